"""`results/longer-training.md`: the same models at earlier and later updates."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from longer_study.records import COLUMNS, LongerRecord, Measures
from relakit.analysis.estimate import Estimate
from relakit.reproduce.markdown import table
from relakit.reproduce.records import Records

INTRODUCTION: Final = """# What longer training changes

`benchmarks/longer_training.py` makes this page from the files in
[`longer-training/`](longer-training/) and [`reproduction/`](reproduction/); do not edit it.

Each row is a model on its way through one training run: the mean of the last five checkpoints at
that update. The last row is the finished model, after its learning rate has fallen to 0.

- *BLEU*: greedy search on the first validation sentences, with the last checkpoint alone.
- *AoL*, *AoH*: the paper's alignment error rates, in percent.
- *Gap*, by layer: null rate of cross-attention to the source of another pair, minus the null rate
  with the pair's own source, in percentage points.
- In brackets: 95% intervals over sentence pairs.
"""


def make_page(records: Sequence[LongerRecord], trained: Records) -> str:
    """The page, with one section per run."""
    sections = [INTRODUCTION]
    for run in dict.fromkeys(record.run for record in records):
        on_the_way = [record for record in records if record.run == run]
        rows = [_row(f"{one.update:,}", one.bleu, one.measures) for one in on_the_way]
        end = trained.get(run)
        last = None if end is None else Measures.of_record(end)
        if end is not None and last is not None:
            bleu = next((point.bleu for point in reversed(end.curve)), None)
            rows.append(_row(f"{end.training.updates:,}", bleu, last))
        heading = f"## {run.about_corpus.label}, {run.row}, seed {run.seed}\n"
        cpus = ", ".join(sorted({record.machine.cpu for record in on_the_way}))
        gold = on_the_way[0].measures.gold
        layers = len(on_the_way[0].measures.gaps)
        headings = ("updates", "BLEU", *COLUMNS, *(f"gap, layer {n}" for n in range(1, layers + 1)))
        sections += [heading, f"Links: {gold}. {cpus}.\n", table(headings, rows, left=0)]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def _row(updates: str, bleu: float | None, measures: Measures) -> list[str]:
    return [updates, "" if bleu is None else f"{bleu:.1f}", *_cells(measures)]


def _cells(measures: Measures) -> Iterator[str]:
    yield from _percents(measures.aer[column] for column in COLUMNS)
    yield from _percents(measures.gaps)


def _percents(estimates: Iterable[Estimate]) -> Iterator[str]:
    for one in estimates:
        yield f"{100 * one.value:.1f} ({100 * one.low:.1f} to {100 * one.high:.1f})"

"""`results/longer-training.md`: the same models at earlier and later updates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from longer_study.records import COLUMNS, LongerRecord, Measures
from relakit.analysis.attention_weights import SUM_TO_ONE
from relakit.analysis.estimate import Estimate
from relakit.reproduce.markdown import table
from relakit.reproduce.records import Records
from relakit.reproduce.runs import Run

INTRODUCTION: Final = """# What longer training changes

`benchmarks/longer_training.py` makes this page from the files in
[`longer-training/`](longer-training/) and [`reproduction/`](reproduction/); do not edit it.

Each row is a model on its way through one training run: the mean of the last five checkpoints at
that update. The last row is the finished model, after its learning rate has fallen to 0.

- *BLEU*: greedy search on the first validation sentences, with the last checkpoint alone.
- *AoL*, *AoH*: the paper's alignment error rates, in percent.
- *Gap*, by layer: null rate of cross-attention to the source of another pair, minus the null rate
  with the pair's own source, in percentage points; not for softmax, which is never null.
- In brackets: 95% intervals over sentence pairs.
"""


def make_page(records: Sequence[LongerRecord], trained: Records) -> str:
    """The page, with one section per run."""
    sections = [INTRODUCTION]
    for run, recipe in dict.fromkeys((record.run, record.recipe) for record in records):
        on_the_way = [one for one in records if (one.run, one.recipe) == (run, recipe)]
        columns = _Columns(len(on_the_way[0].measures.gaps) if _may_be_null(run) else 0)
        rows = [columns.row(one.update, one.bleu, one.measures) for one in on_the_way]
        end = trained.get(run) if recipe is None else None
        last = None if end is None else Measures.of_record(end)
        if end is not None and last is not None:
            bleu = next((point.bleu for point in reversed(end.curve)), None)
            rows.append(columns.row(end.training.updates, bleu, last))
        heading = f"## {run.about_corpus.label}, {run.row}, seed {run.seed}"
        heading += "\n" if recipe is None else f", recipe {recipe}\n"
        cpus = ", ".join(sorted({record.machine.cpu for record in on_the_way}))
        links = f"Links: {on_the_way[0].measures.gold}. {cpus}.\n"
        sections += [heading, links, table(columns.headings, rows, left=0)]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def _may_be_null(run: Run) -> bool:
    """Whether queries may attend to nothing: without that, all null rates and gaps are 0."""
    return run.row not in SUM_TO_ONE


@dataclass(frozen=True)
class _Columns:
    """The columns of a run's table."""

    layers: int
    """How many have a gap"""

    @property
    def headings(self) -> list[str]:
        return ["updates", "BLEU", *COLUMNS, *(f"gap, layer {n + 1}" for n in range(self.layers))]

    def row(self, update: int, bleu: float | None, measures: Measures) -> list[str]:
        estimates = [*(measures.aer[name] for name in COLUMNS), *measures.gaps[: self.layers]]
        return [f"{update:,}", "" if bleu is None else f"{bleu:.1f}", *map(_percent, estimates)]


def _percent(one: Estimate) -> str:
    return f"{100 * one.value:.1f} ({100 * one.low:.1f} to {100 * one.high:.1f})"

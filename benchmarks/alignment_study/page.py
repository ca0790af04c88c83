"""`results/alignment.md`: how well each way of aligning works."""

from collections.abc import Iterable, Sequence
from typing import Final

from alignment_study.material import STUDIES, TITLES
from alignment_study.records import AlignmentRecord
from alignment_study.systems import ATTENTIONS, BOTH, EFLOMAL, ONE_WAY, OTHER_WAY
from relakit.analysis.links import READINGS
from relakit.reproduce.markdown import table

INTRODUCTION: Final = """# Word alignment

`benchmarks/alignment.py` makes this page from the files in [`alignment/`](alignment/); do not edit
it. [docs/alignment.md](../docs/alignment.md) explains the ways of aligning.

Models, alignment layers and eflomal learn from the same training set; the third column says from
how many of its pairs. Heads are chosen without gold links, on other pairs than the scored ones.
Alignment error rates are in percent, with 95% intervals over sentence pairs. *Null, right* is the
share of target words without a gold link that get no link; *null, wrong* is the share of all other
target words that get none.
"""
AVERAGES: Final = tuple(f"{way}, {reading}" for reading in READINGS for way in ("AoL", "AoH"))
DIRECTIONS: Final = (ONE_WAY, OTHER_WAY, BOTH)
WAYS: Final = (
    *AVERAGES,
    *(f"{what}, {direction}" for what in ("attention", "layer") for direction in DIRECTIONS),
    *DIRECTIONS,
)
HEADINGS: Final = (
    "who",
    "how",
    "read or learned from",
    "AER",
    "precision",
    "recall",
    "null, right",
    "null, wrong",
)
TEXT_COLUMNS: Final = 3


def make_page(records: Sequence[AlignmentRecord]) -> str:
    """The page; studies without a record are left out."""
    sections = [INTRODUCTION]
    for study in STUDIES:
        of_study = [record for record in records if record.study == study]
        if of_study:
            sections += [f"## {TITLES[study]}\n", _section(of_study)]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def _section(records: Sequence[AlignmentRecord]) -> str:
    cpus = ", ".join(sorted({record.machine.cpu for record in records}))
    pairs = max(record.pairs for record in records)
    ordered = sorted(records, key=_order)
    said = dict.fromkeys(sentence for record in ordered for sentence in _trained(record))
    models = "".join(f" {sentence}" for sentence in said)
    rows = [list(_row(record)) for record in ordered]
    return f"{pairs:,} pairs, {cpus}.{models}\n\n{table(HEADINGS, rows, left=TEXT_COLUMNS)}"


def _trained(record: AlignmentRecord) -> Iterable[str]:
    for trained, direction in zip(record.trained, ("", " in the other direction"), strict=False):
        if trained is None:
            continue
        updates = f"{trained.updates:,} updates"
        if trained.verdict != "finished":
            updates += " and is not finished"
        bleu = "" if trained.bleu is None else f" and reaches {trained.bleu:.1f} BLEU"
        yield f"The model with {record.system}{direction} was trained for {updates}{bleu}."


def _order(record: AlignmentRecord) -> tuple[int, int]:
    return (*ATTENTIONS, EFLOMAL).index(record.system), WAYS.index(record.way)


def _row(record: AlignmentRecord) -> Iterable[str]:
    aer = record.aer
    yield record.system
    yield record.way
    yield record.about
    yield f"{100 * aer.value:.1f} ({100 * aer.low:.1f} to {100 * aer.high:.1f})"
    for estimate in (record.precision, record.recall):
        yield "" if estimate is None else f"{100 * estimate.value:.1f}"
    for share in (record.null_right, record.null_wrong):
        yield "" if share is None else f"{100 * share:.0f}%"

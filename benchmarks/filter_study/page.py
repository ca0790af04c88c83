"""`results/filtering.md`: how well noise is told from clean pairs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from filter_study.downstream import (
    CLEAN_PART,
    KEPT,
    NOISY,
    DownstreamRecord,
    read_downstream,
)
from filter_study.material import STUDIES, TITLES
from filter_study.measure import (
    ANY,
    BICLEANER,
    CALIBRATED_CLEAN,
    CALIBRATED_SELF,
    WORD_ALIGNMENT,
)
from filter_study.records import FilterRecord, Separation, read_filter_records
from relakit.clean.measures import RANKED
from relakit.clean.score import SCORING
from relakit.files.writing import write_whole
from relakit.reproduce.markdown import table

INTRODUCTION: Final = """# Telling noise from clean pairs

`benchmarks/filtering.py` makes this page from the files in [`filtering/`](filtering/); do not edit
it. [docs/cleaning.md](../docs/cleaning.md) explains the scores.

The models have not seen these pairs. Each cell has the area under the ROC curve, which is the
probability that a noisy pair ranks behind a clean one, with its 95% interval. After the slash is
the precision in percent at 90% recall, if half of the pairs were noise. The best area of each
column is bold.
"""
OTHERS: Final = (WORD_ALIGNMENT, BICLEANER)
MEASURES: Final = (CALIBRATED_CLEAN, CALIBRATED_SELF, *RANKED, *OTHERS)
EARLIER: Final = (
    "Scored by an earlier version, which may have found other words unsupported and have given "
    "other probabilities."
)
LABELS: Final = {"A": "misaligned", "L": "wrong language", "E": "errors in the translation"}
"""The meaning of the labels that people gave."""


def make_page(records: Sequence[FilterRecord], downstream: DownstreamRecord | None = None) -> str:
    """The page; studies without a record are left out."""
    sections = [INTRODUCTION]
    for study in STUDIES:
        for record in records:
            if record.study == study:
                sections += [f"## {TITLES[study]}\n", *_section(record)]
    if downstream is not None:
        sections += ["## What filtering brings\n", *_downstream(downstream)]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def write_page(folder: Path) -> Path:
    """Make the page from the files in a folder, and write it beside the folder."""
    records = read_filter_records(folder)
    page = folder.parent / f"{folder.name}.md"
    downstream = read_downstream(downstream_path(folder))
    write_whole(page, make_page(records, downstream).encode("utf-8"))
    return page


def downstream_path(folder: Path) -> Path:
    return folder.parent / f"{folder.name}-downstream.json"


def _downstream(record: DownstreamRecord) -> list[str]:
    rows = [
        [what, f"{record.pairs[name]:,}", f"{record.bleu[name]:.1f}"]
        for name, what in (
            (NOISY, f"all pairs, {100 * record.noise:.0f}% of them noise"),
            (KEPT, "what the filter kept"),
            (CLEAN_PART, "the clean pairs alone"),
        )
    ]
    changes = "".join(f", `{setting}`" for setting in record.changes)
    return [
        "Noise of all five kinds is planted in the generated corpus. The model trained on all of "
        "it scores the pairs it was trained on, and `relakit filter --calibrate` keeps what it "
        "takes for clean, without knowing anything else. "
        f"The demo's recipe{changes}, one seed, BLEU on the clean test set ({record.signature}).\n",
        table(["trained on", "pairs", "BLEU"], rows),
        f"Of the kept pairs, {record.kept_clean:,} were clean. {record.machine.cpu}.\n",
    ]


def _section(record: FilterRecord) -> list[str]:
    counts = ", ".join(
        f"{count:,} {LABELS.get(kind, kind)}" for kind, count in record.pairs.items()
    )
    kinds = list(record.separations[CALIBRATED_CLEAN])
    best = {
        kind: max(found[kind].auc.value for found in record.separations.values()) for kind in kinds
    }
    rows = [
        [name, *(_cell(record.separations[name][kind], best[kind]) for kind in kinds)]
        for name in MEASURES
        if name in record.separations
    ]
    headings = ["", *(kind if kind == ANY else LABELS.get(kind, kind) for kind in kinds)]
    about = f"{record.models}. Pairs: {counts}. {record.machine.cpu}."
    if record.scoring != SCORING:
        about += f" {EARLIER}"
    parts = [f"{about}\n", table(headings, rows)]
    if record.words is not None:
        words = record.words
        parts.append(
            f"Inserted words, one by one ({words.words:,} of them; {words.by}): precision "
            f"{words.precision:.2f}, recall {words.recall:.2f}, F1 {words.f1:.2f}.\n"
        )
    return parts


def _cell(found: Separation, best: float) -> str:
    auc = found.auc
    mark = "**" if auc.value == best else ""
    return (
        f"{mark}{auc.value:.3f}{mark} ({auc.low:.2f}-{auc.high:.2f}) / {100 * found.precision:.0f}"
    )

"""`results/README.md`: every table beside the paper's, made from the result files alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from relakit.analysis.links import EndWeight
from relakit.analysis.results import layer_means
from relakit.attention_kinds import ATTENTION_KINDS
from relakit.files.writing import write_whole
from relakit.report.figure_files import why_no_figures
from relakit.report.figures import FIGURES_OF_ALL_MODELS
from relakit.reproduce import tables
from relakit.reproduce.analyses import PEOPLE, PLANTED
from relakit.reproduce.claims_part import claims_part
from relakit.reproduce.corpora import CORPORA
from relakit.reproduce.evidence import Evidence, means_over_seeds
from relakit.reproduce.figures import example_paths, figure_paths, write_figures
from relakit.reproduce.markdown import table
from relakit.reproduce.plan import is_current
from relakit.reproduce.records import RECORDS, Records, RunRecord, read_records
from relakit.reproduce.rows import ALL_ROWS, OURS
from relakit.reproduce.runs import Run

PAGE: Final = "README.md"
_INTRODUCTION: Final = """\
# Results

`relakit reproduce` makes this page from the files in this folder; do not edit it. Each file in
[`reproduction/`]({records}) holds one training run: settings, seed, versions, processor, scores
with their signatures, the training curve, and every number about its attention.
[docs/reproduction.md](../docs/reproduction.md) says what each scale trains, what differs from the
paper, and how to run it again.

How to read the numbers:

- ± is the standard deviation over seeds.
- n is the number of runs, or of language pairs where a claim is about those. 3 / 1 means that three
  runs are compared with one.
- Intervals are at 95%, except for speed, where they are quartiles. For rankings and shuffled
  targets they reach from the lowest limit of any seed to the highest. For the error rates of two
  single runs they treat the models as independent, which makes them wider than necessary: both
  align the same sentences.
- BLEU is cased and detokenised, computed by sacreBLEU.
"""


def write_page(results: Path) -> Path:
    """Write the page of a results folder, and its figures; returns the page's path.

    Without matplotlib the figures stay as they are.
    """
    path = results / PAGE
    evidence, older = read_evidence(results)
    write_whole(path, make_page(evidence, older).encode())
    if why_no_figures() is None:
        write_figures(evidence)
    return path


def read_evidence(results: Path) -> tuple[Evidence, list[Run]]:
    """The result files made with the current recipes, and the runs made with other ones."""
    records = read_records(results)
    current = [record for record in records.values() if _is_current(record)]
    older = sorted(set(records) - {record.run for record in current})
    return Evidence(Records(current), results), older


def _is_current(record: RunRecord) -> bool:
    run = record.run
    corpus = CORPORA.get(run.corpus)
    is_known = run.row in ALL_ROWS and corpus is not None and run.scale in corpus.recipes
    return is_known and is_current(record, run.recipe(Path("data")))


def make_page(evidence: Evidence, older: Sequence[Run] = ()) -> str:
    """The page about these result files; those of ``older`` runs are only named."""
    parts = [
        _INTRODUCTION.format(records=f"{RECORDS}/"),
        claims_part(evidence),
        _part("Table 1: ablation (BLEU)", tables.table_1(evidence)),
        _part("Table 2: speed relative to softmax", tables.table_2(evidence), _SPEED_NOTE),
        _part("Figure 2: decoding speed by source length", tables.figure_2(evidence), _LENGTH_NOTE),
        _part("Table 3: more language pairs (BLEU)", tables.table_3(evidence)),
        _part("Table 4: FLOPs by formula", tables.table_4()),
        _alignment_part(evidence),
        _part("Table 6: head diversity, encoder / decoder / cross", tables.table_6(evidence)),
        _layers_part(evidence),
        *(_figure_part(evidence, number, title) for number, title in _FIGURES.items()),
        _ranking_part(evidence),
        _part("Stability of the demo", tables.stability_table(evidence), _STABILITY_NOTE),
        _runs_part(evidence),
        _older_part(older),
    ]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


_STABILITY_NOTE: Final = (
    "On the demo's corpus: first other kinds of attention, then ReLA-g (or softmax) with one "
    "change to the recipe. Smaller updates come with a warm-up of their own. RMS(z) is the size of "
    "attention's output before its norm; a gate below 0.01 counts as closed. Both are taken on the "
    "test set at the end of training, in the layer where they are largest."
)
_FIGURES: Final = {
    3: "sparsity by layer",
    4: "alignment error rate by layer, weight on the end of sentence ignored",
    5: "head diversity by layer, ReLA-g at temperature 1 (Table 6 has lower temperatures)",
    6: "null rate by layer, dashed with shuffled targets",
    7: "heads that specialise",
    8: "null attention, examples",
    9: "null attention in sentences of several clauses",
    10: "pairs with the lowest and the highest null rates",
}
_HOW_SPEED: Final = (
    "Softmax and ReLA-g decode in C++, sparsemax and 1.5-entmax with PyTorch. From "
    "[benchmarks/](benchmarks/); [docs/benchmark.md](../docs/benchmark.md) explains how it is "
    "measured."
)
_MEDIANS: Final = "relakit in float32 on one thread of a CPU, medians of ratios within rounds"
_SPEED_NOTE: Final = (
    f"{_MEDIANS}, with quartiles. {_HOW_SPEED} Speed was measured with small models (3+3 layers, "
    "256 features) and random weights on generated text. The parameter counts are for the authors' "
    "model; the paper does not give its vocabulary, so it was chosen to match the paper's count "
    "for softmax ([docs/authors.md](../docs/authors.md))."
)
_LENGTH_NOTE: Final = f"{_MEDIANS}. {_HOW_SPEED}"


def _part(title: str, content: str | None, note: str = "") -> str:
    if content is None:
        return f"## {title}\n\nNot measured yet.\n"
    return f"## {title}\n\n" + (f"{note}\n\n" if note else "") + f"{content}\n"


def _alignment_part(evidence: Evidence) -> str:
    notes: dict[EndWeight, str] = {
        "ignored": "Weight on the source's end of sentence is ignored:",
        "competes": "Weight on the source's end of sentence competes: a word that it wins has no "
        "link:",
    }
    parts = [f"The paper, WMT14 en-de, RWTH links:\n\n{tables.table_5_paper()}"]
    for end, note in notes.items():
        found = tables.table_5(evidence, end)
        if found:
            parts += [note, *found]
    note = "Rows differ in BLEU too (Tables 1 and 3): a model that translates badly aligns badly."
    return _part("Table 5: alignment error rates in percent", "\n\n".join(parts), note)


def _layers_part(evidence: Evidence) -> str:
    """Figures 3 and 6 as numbers, for ReLA-g."""
    rows = []
    for setting in evidence.settings():
        analyses = [run.attention for run in evidence.runs(setting, OURS) if run.attention]
        for kind in ATTENTION_KINDS:
            for number, name in (("sparsity", "sparsity"), ("null_rate", "null rate")):
                layers = [layer_means(getattr(a.kind(kind), number)) for a in analyses]
                if layers:
                    cells = " ".join(f"{100 * mean:.0f}" for mean in means_over_seeds(layers))
                    rows.append([setting.label, kind, name, cells, str(len(layers))])
    headings = ["where", "attention", "number", "by layer, percent", "n"]
    content = table(headings, rows, left=4) if rows else None
    return _part("Sparsity and null rate of ReLA-g, in numbers", content)


def _figure_part(evidence: Evidence, number: int, title: str) -> str:
    drawings = [
        f"{shown} (first seed):\n\n![Figure {number}, {shown}]({path})"
        for shown, path in _paths(evidence, number)
    ]
    return _part(f"Figure {number}: {title}", "\n\n".join(drawings) or None)


def _paths(evidence: Evidence, number: int) -> list[tuple[str, str]]:
    is_drawn_now = number in FIGURES_OF_ALL_MODELS
    return (figure_paths if is_drawn_now else example_paths)(evidence, number)


def _ranking_part(evidence: Evidence) -> str:
    note = (
        "Areas under the ROC curve: 0.5 is chance, and below it bad pairs score lower than good "
        "ones. The best head is chosen on other pairs, separately for each kind of bad pair, so "
        "rows may be about different heads. Noise is planted in targets: *shuffled* is the target "
        "of another pair, *inserted* contains a phrase from another target, *truncated* is cut "
        "off, *language* is the source of another pair, *copied* is the pair's own source. Of the "
        "pairs labelled by people, valid ones count as good, misaligned (A) and wrong-language (L) "
        "ones as bad; the others are left out."
    )
    parts = []
    for labels in (PLANTED, PEOPLE):
        found = tables.areas_table(evidence, labels)
        if found:
            parts += [f"### {labels}", *found]
    return _part("Ranking pairs by their null rate", "\n\n".join(parts) or None, note)


def _runs_part(evidence: Evidence) -> str:
    rows = []
    for run in sorted(evidence.records):
        record = evidence.records[run]
        score = "failed" if record.bleu is None else f"{record.bleu:.2f}"
        rows.append(
            [
                f"[{run.name}]({RECORDS}/{run.name}.json)",
                score,
                f"{record.training.updates:,}",
                f"{record.training.seconds / 60:.0f}",
                record.machine.get("cpu") or "",
            ]
        )
    headings = ["run", "BLEU", "updates", "minutes of updates", "processor"]
    note = (
        "Minutes depend on what else the machine was doing and on how many processes trained the "
        "run. They tell you what to expect, not which model is faster."
    )
    return _part("All runs", table(headings, rows) if rows else None, note)


def _older_part(older: Sequence[Run]) -> str:
    if not older:
        return ""
    names = ", ".join(f"[{run.name}]({RECORDS}/{run.name}.json)" for run in older)
    return f"Trained with older settings and not counted: {names}\n"

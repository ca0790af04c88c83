"""Figures 3 to 6 of every setting, drawn from the result files."""

from collections.abc import Iterator, Sequence
from typing import Final

from relakit.analysis.results import ModelAnalysis
from relakit.report.figure_files import save_figure
from relakit.report.figures import FIGURES_OF_ALL_MODELS, ModelsFigure
from relakit.reproduce.evidence import Evidence, Setting
from relakit.reproduce.records import RunRecord
from relakit.reproduce.rows import OURS
from relakit.reproduce.studies import COMPARED

FIGURES: Final = "figures"
"""Their folder, in the folder of results."""


def figure_paths(evidence: Evidence, number: int) -> list[tuple[str, str]]:
    """What each drawing of a figure shows, and its path in the folder of results."""
    return [(title, path) for title, path, _, _ in _drawings(evidence, number)]


def write_figures(evidence: Evidence) -> None:
    """Draw all of them into the folder of results; needs matplotlib."""
    for number in FIGURES_OF_ALL_MODELS:
        for _, path, analyses, draw in _drawings(evidence, number):
            figure = draw(analyses)
            assert figure is not None, "alignments have been analyzed"
            save_figure(figure, evidence.results / path)


def _drawings(
    evidence: Evidence, number: int
) -> Iterator[tuple[str, str, list[ModelAnalysis], ModelsFigure]]:
    rows = (OURS,) if number == 6 else COMPARED
    for setting in evidence.settings():
        runs = list(_first_runs(evidence, setting, rows))
        name = f"{setting.scale}-{setting.corpus}-figure{number}"
        if number != 4:
            analyses = [_named(run) for run in runs]
            if analyses:
                path = f"{FIGURES}/{name}.svg"
                yield setting.label, path, analyses, FIGURES_OF_ALL_MODELS[number]
            continue
        for gold in sorted({gold for run in runs for gold in run.alignments}):
            analyses = [
                _named(run).model_copy(update={"alignment": run.alignments[gold].result})
                for run in runs
                if gold in run.alignments
            ]
            title = f"{setting.label}, {gold} links"
            yield (
                title,
                f"{FIGURES}/{name}-{gold.lower()}.svg",
                analyses,
                FIGURES_OF_ALL_MODELS[number],
            )


def _first_runs(evidence: Evidence, setting: Setting, rows: Sequence[str]) -> Iterator[RunRecord]:
    """The first seed of each row that was analyzed."""
    for row in rows:
        analyzed = [run for run in evidence.runs(setting, row) if run.attention is not None]
        if analyzed:
            yield analyzed[0]


def _named(run: RunRecord) -> ModelAnalysis:
    """What figures call a model is its row."""
    assert run.attention is not None
    return run.attention.model_copy(update={"name": run.row})

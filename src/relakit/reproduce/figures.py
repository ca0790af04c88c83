"""Figures 3 to 6 for every setting, drawn from result files; 7 to 10, drawn during analysis."""

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Final

from relakit.analysis.results import ModelAnalysis, SentenceView
from relakit.report.figure_files import save_figure, why_no_figures
from relakit.report.figures import FIGURES_OF_ALL_MODELS, FIGURES_OF_ONE_MODEL, ModelsFigure
from relakit.reproduce.corpora import DEMO
from relakit.reproduce.evidence import Evidence, Setting
from relakit.reproduce.records import RunRecord
from relakit.reproduce.rows import OURS
from relakit.reproduce.runs import Run
from relakit.reproduce.studies import COMPARED

FIGURES: Final = "figures"
"""The folder of figures, in the results folder."""
QUALITY_FIGURE: Final = 10
"""The figure with the lowest and the highest null rates."""


def figure_paths(evidence: Evidence, number: int) -> list[tuple[str, str]]:
    """What each drawing of a figure shows, and its path in the results folder."""
    return [(title, path) for title, path, _, _ in _drawings(evidence, number)]


def write_figures(evidence: Evidence) -> None:
    """Draw figures 3 to 6 into the results folder; needs matplotlib."""
    for number in FIGURES_OF_ALL_MODELS:
        for _, path, analyses, draw in _drawings(evidence, number):
            figure = draw(analyses)
            assert figure is not None, "alignments have been analyzed"
            save_figure(figure, evidence.results / path)


def shows_examples(run: Run) -> bool:
    """Whether figures 7 to 10 show sentences of a run: only those of our own generated text."""
    is_ours = run.about_corpus.folder is None and run.corpus != DEMO
    return is_ours and run.row == OURS and run.seed == 1


def can_show_examples(run: Run) -> bool:
    """Whether figures 7 to 10 of a run can be drawn here."""
    return shows_examples(run) and why_no_figures() is None


def lacks_examples(run: Run, results: Path) -> bool:
    """Whether figures 7 to 10 of a run can be drawn here but do not exist yet."""
    setting = Setting(run.scale, run.corpus)
    # Not all: a figure that needs certain heads or clauses may have none to show.
    has_some = any((results / _example_path(setting, n)).is_file() for n in FIGURES_OF_ONE_MODEL)
    return can_show_examples(run) and not has_some


def write_examples(
    run: Run,
    analysis: ModelAnalysis,
    views: Sequence[SentenceView],
    noisy_views: Sequence[SentenceView],
    results: Path,
) -> None:
    """Draw figures 7 to 10, replacing those of an earlier model; needs matplotlib.

    Args:
        run: the run whose model it is.
        analysis: the model's analysis on its test set.
        views: sentence views of good pairs.
        noisy_views: sentence views of good and bad pairs, for the figure that contrasts them.
        results: the results folder.
    """
    named = analysis.model_copy(update={"name": run.row})
    for number, draw in FIGURES_OF_ONE_MODEL.items():
        figure = draw(named, noisy_views if number == QUALITY_FIGURE else views)
        path = results / _example_path(Setting(run.scale, run.corpus), number)
        if figure is None:
            path.unlink(missing_ok=True)
        else:
            save_figure(figure, path)


def example_paths(evidence: Evidence, number: int) -> list[tuple[str, str]]:
    """The drawings of figures 7 to 10 in the results folder, in the form of `figure_paths`."""
    paths = [(setting.label, _example_path(setting, number)) for setting in evidence.settings()]
    return [(title, path) for title, path in paths if (evidence.results / path).is_file()]


def _example_path(setting: Setting, number: int) -> str:
    return f"{FIGURES}/{setting.scale}-{setting.corpus}-figure{number}.svg"


def _drawings(
    evidence: Evidence, number: int
) -> Iterator[tuple[str, str, list[ModelAnalysis], ModelsFigure]]:
    rows = (OURS,) if number == 6 else COMPARED
    for setting in evidence.settings():
        name = f"{setting.scale}-{setting.corpus}-figure{number}"
        if number != 4:
            analyses = [_named(run) for run in _first_runs(evidence, setting, rows)]
            if analyses:
                path = f"{FIGURES}/{name}.svg"
                yield setting.label, path, analyses, FIGURES_OF_ALL_MODELS[number]
            continue
        for gold in evidence.gold_sets(setting):
            aligned = evidence.alignments(setting, gold)
            analyses = [
                _named(run).model_copy(update={"alignment": aligned[run.run].result})
                for run in _first_runs(evidence, setting, rows, among=aligned)
            ]
            if not analyses:
                continue
            title = f"{setting.label}, {gold} links"
            yield (
                title,
                f"{FIGURES}/{name}-{gold.lower()}.svg",
                analyses,
                FIGURES_OF_ALL_MODELS[number],
            )


def _first_runs(
    evidence: Evidence,
    setting: Setting,
    rows: Sequence[str],
    among: Container[Run] | None = None,
) -> Iterator[RunRecord]:
    """The first analyzed seed of each row, considering only ``among`` if given."""
    for row in rows:
        for record in evidence.runs(setting, row):
            if record.attention is not None and (among is None or record.run in among):
                yield record
                break


def _named(run: RunRecord) -> ModelAnalysis:
    """A run's analysis under the name of its row, which is what figures call it."""
    assert run.attention is not None
    return run.attention.model_copy(update={"name": run.row})

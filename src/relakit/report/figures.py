"""The paper's figures 3 to 10, for the models that were analysed."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from relakit.analysis.results import ModelAnalysis
from relakit.analysis.views import SentenceView
from relakit.report.figure_files import save_figure, why_no_figures
from relakit.report.heat_map_figures import (
    draw_clauses,
    draw_examples,
    draw_heads,
    draw_quality,
)
from relakit.report.line_figures import (
    draw_alignment,
    draw_diversity,
    draw_null_rates,
    draw_sparsity,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS: Final = ("svg", "png")

_SENTENCE_FIGURES: Final[
    dict[int, Callable[[ModelAnalysis, Sequence[SentenceView]], "Figure | None"]]
] = {7: draw_heads, 8: draw_examples, 9: draw_clauses, 10: draw_quality}
"""By the figure's number: what draws it, if there are sentences for it."""


def write_figures(
    analyses: Sequence[ModelAnalysis],
    views: Mapping[str, Sequence[SentenceView]],
    folder: Path,
) -> list[Path]:
    """Draw all figures, each as SVG and PNG.

    Figures 3 to 6 hold all models, figure 4 those with gold links. Figures 7 to 10 are of one
    model; with several models the file's name ends with the model's. Those that no sentence is
    right for are left out: it may be too long, or have no words.

    Args:
        analyses: of each model.
        views: sentences to choose from, by the model's name.
        folder: is made if it is missing.

    Returns:
        The files that were written.

    Raises:
        ValueError: matplotlib is missing, or there is no model.
    """
    problem = why_no_figures()
    if problem is not None:
        raise ValueError(problem)
    if not analyses:
        raise ValueError("figures need the analysis of at least one model, got none")
    from matplotlib import rc_context

    written = []
    for name, draw in _drawings(analyses, views):
        # Names of models are no formulas.
        with rc_context({"text.parse_math": False}):
            figure = draw()
        if figure is None:
            continue
        for suffix in FORMATS:
            path = folder / f"{name}.{suffix}"
            save_figure(figure, path)
            written.append(path)
            figure.set_layout_engine("none")  # it is laid out now, for the next format too
    return written


def _drawings(
    analyses: Sequence[ModelAnalysis], views: Mapping[str, Sequence[SentenceView]]
) -> list[tuple[str, Callable[[], "Figure | None"]]]:
    """Names of files, and what draws them."""
    drawings: list[tuple[str, Callable[[], Figure | None]]] = [
        ("figure-3", lambda: draw_sparsity(analyses)),
        ("figure-5", lambda: draw_diversity(analyses)),
        ("figure-6", lambda: draw_null_rates(analyses)),
    ]
    if any(analysis.alignment for analysis in analyses):
        drawings.insert(1, ("figure-4", lambda: draw_alignment(analyses)))
    names = _file_names([analysis.name for analysis in analyses])
    for analysis, name in zip(analyses, names, strict=True):
        own = views.get(analysis.name, ())
        for number, draw in _SENTENCE_FIGURES.items():
            drawings.append((f"figure-{number}{name}", _later(draw, analysis, own)))
    return drawings


def _later(
    draw: Callable[[ModelAnalysis, Sequence[SentenceView]], "Figure | None"],
    analysis: ModelAnalysis,
    views: Sequence[SentenceView],
) -> Callable[[], "Figure | None"]:
    return lambda: draw(analysis, views)


def _file_names(names: Sequence[str]) -> list[str]:
    """What is added to the files' names, if there are several models: different for each."""
    if len(names) == 1:
        return [""]
    plain = [re.sub(r"[^\w.-]+", "-", name).strip("-.") for name in names]
    differ = len(set(plain)) == len(plain) and all(plain)
    return [f"-{name}" if differ else f"-{number}" for number, name in enumerate(plain, 1)]

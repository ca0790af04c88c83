"""The paper's figures 3 to 10, for the models that were analyzed."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from relakit.analysis.results import ModelAnalysis, SentenceView
from relakit.analysis.text_results import TextView
from relakit.report.figure_files import save_figure, why_no_figures
from relakit.report.figures_3_to_6_by_layer import (
    draw_alignment,
    draw_diversity,
    draw_null_rates,
    draw_sinks,
    draw_sparsity,
)
from relakit.report.figures_7_to_10_heat_maps import (
    draw_clauses,
    draw_examples,
    draw_heads,
    draw_quality,
)
from relakit.report.packing import View
from relakit.report.text_figures import draw_by_head, draw_text_heads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS: Final = ("svg", "png")

ModelsFigure: TypeAlias = Callable[[Sequence[ModelAnalysis]], "Figure | None"]
SentencesFigure: TypeAlias = Callable[[ModelAnalysis, Sequence[SentenceView]], "Figure | None"]

FIGURES_OF_ALL_MODELS: Final[dict[int, ModelsFigure]] = {
    3: draw_sparsity,
    4: draw_alignment,
    5: draw_diversity,
    6: draw_null_rates,
}
FIGURES_OF_ONE_MODEL: Final[dict[int, SentencesFigure]] = {
    7: draw_heads,
    8: draw_examples,
    9: draw_clauses,
    10: draw_quality,
}
"""By number in the paper; each draws its figure, or returns None if there is nothing to show."""
TextsFigure: TypeAlias = Callable[[ModelAnalysis, Sequence[TextView]], "Figure | None"]
TEXT_FIGURES_OF_ALL_MODELS: Final[dict[str, ModelsFigure]] = {
    "sparsity": draw_sparsity,
    "null-rate": draw_null_rates,
    "first-sink": draw_sinks,
    "diversity": draw_diversity,
}
TEXT_FIGURES_OF_ONE_MODEL: Final[dict[str, TextsFigure]] = {
    "by-head": draw_by_head,
    "texts": draw_text_heads,
}
"""For models that read texts, by what they show: only some of these figures are in the paper."""


def write_figures(
    analyses: Sequence[ModelAnalysis],
    views: Mapping[str, Sequence[View]],
    folder: Path,
) -> list[Path]:
    """Draw all figures, each as SVG and PNG.

    Figures 3 to 6 show all models, figure 4 those with gold links. Figures 7 to 10 show one model;
    with several models, the file name ends with the model's name. Figures without a suitable
    sentence are left out: sentences may be too long, or have no words. Models that read texts have
    figures 3, 5 and 6 for their self-attention, and others, all named by what they show.

    Args:
        analyses: one per model.
        views: sentences to choose from, by model name.
        folder: created if it is missing.

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
        # A "$" in a model's name must not start a formula.
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
    analyses: Sequence[ModelAnalysis], views: Mapping[str, Sequence[View]]
) -> list[tuple[str, Callable[[], "Figure | None"]]]:
    """File names without suffix, and the functions that draw the figures."""
    of_all: dict[str, ModelsFigure] = TEXT_FIGURES_OF_ALL_MODELS
    if not analyses[0].is_of_texts:
        of_all = {f"figure-{number}": draw for number, draw in FIGURES_OF_ALL_MODELS.items()}
    drawings: list[tuple[str, Callable[[], Figure | None]]] = [
        (name, partial(draw, analyses)) for name, draw in of_all.items()
    ]
    endings = _name_endings([analysis.name for analysis in analyses])
    for analysis, ending in zip(analyses, endings, strict=True):
        drawings += [
            (f"{name}{ending}", draw)
            for name, draw in _drawings_of_one(analysis, views.get(analysis.name, ()))
        ]
    return drawings


def _drawings_of_one(
    analysis: ModelAnalysis, views: Sequence[View]
) -> list[tuple[str, Callable[[], "Figure | None"]]]:
    if analysis.is_of_texts:
        texts = [view for view in views if isinstance(view, TextView)]
        return [
            (name, partial(draw, analysis, texts))
            for name, draw in TEXT_FIGURES_OF_ONE_MODEL.items()
        ]
    sentences = [view for view in views if isinstance(view, SentenceView)]
    return [
        (f"figure-{number}", partial(draw, analysis, sentences))
        for number, draw in FIGURES_OF_ONE_MODEL.items()
    ]


def _name_endings(names: Sequence[str]) -> list[str]:
    """What is appended to file names if there are several models: different for each."""
    if len(names) == 1:
        return [""]
    plain = [re.sub(r"[^\w.-]+", "-", name).strip("-.") for name in names]
    differ = len(set(plain)) == len(plain) and all(plain)
    return [f"-{name}" if differ else f"-{number}" for number, name in enumerate(plain, 1)]

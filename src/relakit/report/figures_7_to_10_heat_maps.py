"""Figures 7 to 10: cross-attention of some heads on some sentences, words on the axes.

A figure is None if there is no sentence to show.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from relakit.analysis.results import ModelAnalysis, SentenceView
from relakit.analysis.word_map import word_weights
from relakit.report.example_choice import (
    by_null_rate,
    clause_sentences,
    nullable_aligner,
    telling_heads,
    telling_layer,
    usual_sentences,
)
from relakit.report.figure_files import drawable
from relakit.report.packing import cross_null_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NULL_COLOUR: Final = "#b8325a"
NULL_TINT: Final = "#fbe9ee"
END: Final = "⟨end⟩"
FONTS: Final[tuple[str, ...]] = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Micro Hei",
)
"""Of those installed, each is used for the characters that the ones before it lack."""
LONGEST_LABEL: Final = 30
"""Characters"""
CELL: Final = 0.17
"""Inches of a cell's side"""


@dataclass(frozen=True)
class _Panel:
    view: SentenceView
    layer: int
    head: int
    title: str


def draw_heads(analysis: ModelAnalysis, views: Sequence[SentenceView]) -> "Figure | None":
    """Figure 7: one sentence in several heads of the layer whose heads differ most."""
    layer = telling_layer(analysis)
    rows = [_head_panels(analysis, view, layer) for view in usual_sentences(views, 1)]
    return _draw(rows, f"{analysis.name}, {_layer(layer)}")


def draw_examples(analysis: ModelAnalysis, views: Sequence[SentenceView]) -> "Figure | None":
    """Figure 8: more sentences in the same heads."""
    layer = telling_layer(analysis)
    rows = [_head_panels(analysis, view, layer) for view in usual_sentences(views, 4)[1:]]
    return _draw(rows, f"{analysis.name}, {_layer(layer)}")


def draw_clauses(analysis: ModelAnalysis, views: Sequence[SentenceView]) -> "Figure | None":
    """Figure 9: sentences of several clauses in the same heads."""
    layer = telling_layer(analysis)
    rows = [_head_panels(analysis, view, layer) for view in clause_sentences(views, 2)]
    return _draw(rows, f"{analysis.name}, {_layer(layer)}, several clauses")


def draw_quality(analysis: ModelAnalysis, views: Sequence[SentenceView]) -> "Figure | None":
    """Figure 10: pairs with the lowest null rates above, with the highest below."""
    layer = telling_layer(analysis)
    head = nullable_aligner(analysis, layer)
    rows = [
        [_Panel(view, layer, head, _quality_title(view)) for view in group]
        for group in by_null_rate(views, 3)
    ]
    order = "pairs with the lowest null rates above, with the highest below"
    return _draw(rows, f"{analysis.name}, {_layer(layer)}, head {head + 1}:\n{order}")


def _quality_title(view: SentenceView) -> str:
    return f"pair {view.index + 1} (null rate of all heads {cross_null_rate(view):.0%})"


def _layer(layer: int) -> str:
    return f"cross-attention of layer {layer + 1}"


def _head_panels(analysis: ModelAnalysis, view: SentenceView, layer: int) -> list[_Panel]:
    rates = analysis.kind("cross").null_rate[layer]
    panels = []
    for head in telling_heads(analysis, layer):
        rate = rates[head]
        note = "" if rate is None else f" (null rate {rate:.0%})"
        panels.append(_Panel(view, layer, head, f"head {head + 1}{note}"))
    return panels


def cross_word_weights(view: SentenceView, layer: int, head: int) -> npt.NDArray[np.float64]:
    """``[target words + 1, source words + 1]``; the end of the sentence is the last of each."""
    sources, targets = len(view.source_words), len(view.target_words)
    return word_weights(
        view.weights["cross"][layer, head],
        np.append(view.target_token_words, targets).astype(np.int64),
        np.append(view.source_token_words, sources).astype(np.int64),
        target_count=targets + 1,
        source_count=sources + 1,
    )


def _draw(rows: Sequence[Sequence[_Panel]], title: str) -> "Figure | None":
    """A row of panels for each sentence or group. Text of the corpus is never read as maths."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = [row for row in rows if row]
    if not rows:
        return None
    with rc_context({"font.family": _fonts(), "font.size": 8, "text.parse_math": False}):
        columns = max(map(len, rows))
        widths = [
            max(len(row[column].view.source_words) + 1 for row in rows if column < len(row))
            for column in range(columns)
        ]
        heights = [max(len(panel.view.target_words) + 1 for panel in row) for row in rows]
        figure = Figure(
            figsize=(
                CELL * sum(widths) + 0.7 * columns + 0.8,
                CELL * sum(heights) + 1.3 * len(rows) + 0.4,
            ),
            layout="constrained",
        )
        grid = figure.subplots(
            len(rows),
            columns,
            squeeze=False,
            gridspec_kw={"width_ratios": widths, "height_ratios": heights},
        )
        for row, axes in zip(rows, grid, strict=True):
            for ax in axes[len(row) :]:
                ax.set_axis_off()
            for number, panel in enumerate(row):
                is_named = number == 0 or panel.view is not row[number - 1].view
                _draw_panel(axes[number], panel, name_rows=is_named)
        figure.suptitle(drawable(title), fontsize=10)
    return figure


def _label(word: str) -> str:
    """The word, shortened so that there is room for the picture."""
    return drawable(word if len(word) <= LONGEST_LABEL else f"{word[: LONGEST_LABEL - 1]}…")


def _fonts() -> list[str]:
    from matplotlib import font_manager

    installed = font_manager.get_font_names()
    return [font for font in FONTS if font in installed] or ["sans-serif"]


def _draw_panel(ax: "Axes", panel: _Panel, *, name_rows: bool) -> None:
    """``name_rows`` is False if the panel to the left has the same rows."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    view = panel.view
    weights = cross_word_weights(view, panel.layer, panel.head)
    has_negative = bool((weights < 0).any())
    largest = float(np.abs(weights).max())
    blues = ["#dbe9fb", "#4a8fe0", "#0b2e66"]  # those of the page
    colours = (
        colormaps["PRGn"] if has_negative else LinearSegmentedColormap.from_list("attention", blues)
    )
    null_rows = (weights == 0).all(1)
    for row in np.flatnonzero(null_rows):
        ax.axhspan(row - 0.5, row + 0.5, color=NULL_TINT, linewidth=0, zorder=0)
    ax.imshow(
        np.ma.masked_equal(weights, 0.0),
        cmap=colours,
        vmin=-largest if has_negative else 0.0,
        vmax=largest or 1.0,
        aspect="equal",
        interpolation="nearest",
    )
    sources = [_label(view.source[start:end]) for start, end in view.source_words]
    targets = [_label(view.target[start:end]) for start, end in view.target_words]
    ax.set_xticks(range(len(sources) + 1), [*sources, END], rotation=90)
    names = [*targets, END] if name_rows else [""] * len(null_rows)
    marked = [f"{name} ∅" if null else name for name, null in zip(names, null_rows, strict=True)]
    ax.set_yticks(range(len(marked)), marked)
    for label, is_null in zip(ax.get_yticklabels(), null_rows, strict=True):
        if is_null:
            label.set_color(NULL_COLOUR)
    ax.tick_params(length=0, pad=2)
    ax.xaxis.tick_top()
    ax.spines[:].set_color("0.85")
    ax.set_xlabel(f"{panel.title}\nlargest weight {largest:.3g}")

"""Matrices of weights as figures: rows of panels, with labels on the axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from relakit.report.figure_files import drawable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NULL_COLOUR: Final = "#b8325a"
NULL_TINT: Final = "#fbe9ee"
HIDDEN: Final = "0.95"
FONTS: Final[tuple[str, ...]] = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Micro Hei",
)
"""Each of those installed is used for the characters that the ones before it lack."""
LONGEST_LABEL: Final = 30
"""Characters"""
CELL: Final = 0.17
"""The side of a cell, in inches"""
NARROWEST: Final = 8
"""A panel has room for at least this many cells: the text below it is about as wide."""


@dataclass(frozen=True)
class Panel:
    """One matrix."""

    title: str
    weights: npt.NDArray[np.floating]
    """``[rows, columns]``"""
    rows: Sequence[str]
    """Labels of the queries"""
    columns: Sequence[str]
    """Labels of the keys"""
    seen: npt.NDArray[np.int32] | None = None
    """``[rows, 2]``: the first key that a query may see, and the one after the last; None: all"""


def draw_panels(rows: Sequence[Sequence[Panel]], *title: str) -> "Figure | None":
    """A row of panels for each sentence or group, under a title; None if there is no panel.

    Text from the corpus is never parsed as maths.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = [row for row in rows if row]
    if not rows:
        return None
    with rc_context({"font.family": _fonts(), "font.size": 8, "text.parse_math": False}):
        columns = max(map(len, rows))
        widths = [
            max(NARROWEST, *(len(row[column].columns) for row in rows if column < len(row)))
            for column in range(columns)
        ]
        heights = [max(len(panel.rows) for panel in row) for row in rows]
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
                is_named = number == 0 or panel.rows != row[number - 1].rows
                _draw_panel(axes[number], panel, name_rows=is_named)
        figure.suptitle("\n".join(map(drawable, title)), fontsize=10)
    return figure


def _label(word: str) -> str:
    """The word, shortened so that there is room for the picture."""
    return drawable(word if len(word) <= LONGEST_LABEL else f"{word[: LONGEST_LABEL - 1]}…")


def _fonts() -> list[str]:
    from matplotlib import font_manager

    installed = font_manager.get_font_names()
    return [font for font in FONTS if font in installed] or ["sans-serif"]


def _draw_panel(ax: "Axes", panel: Panel, *, name_rows: bool) -> None:
    """``name_rows`` is False if the panel to the left has the same rows."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    weights = panel.weights
    has_negative = bool((weights < 0).any())
    largest = float(np.abs(weights).max())
    blues = ["#dbe9fb", "#4a8fe0", "#0b2e66"]  # as on the page
    colours = (
        colormaps["PRGn"] if has_negative else LinearSegmentedColormap.from_list("attention", blues)
    )
    _hide_keys(ax, panel)
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
    ax.set_xticks(range(len(panel.columns)), [_label(text) for text in panel.columns], rotation=90)
    names = [_label(text) for text in panel.rows] if name_rows else [""] * len(null_rows)
    marked = [f"{name} ∅" if null else name for name, null in zip(names, null_rows, strict=True)]
    ax.set_yticks(range(len(marked)), marked)
    for label, is_null in zip(ax.get_yticklabels(), null_rows, strict=True):
        if is_null:
            label.set_color(NULL_COLOUR)
    ax.tick_params(length=0, pad=2)
    ax.xaxis.tick_top()
    ax.spines[:].set_color("0.85")
    ax.set_xlabel(f"{panel.title}\nlargest weight {largest:.3g}")


def _hide_keys(ax: "Axes", panel: Panel) -> None:
    """Grey out the keys that a query may not see."""
    for row, (first, after) in enumerate(() if panel.seen is None else panel.seen):
        for start, end in ((0, first), (after, len(panel.columns))):
            sides = [start - 0.5, end - 0.5]
            ax.fill_between(sides, row - 0.5, row + 0.5, color=HIDDEN, linewidth=0, zorder=0)

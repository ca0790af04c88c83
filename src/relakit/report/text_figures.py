"""Figures for models that read texts: all heads at a glance, and some heads on a text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from relakit.analysis.results import HeadValues, ModelAnalysis
from relakit.analysis.text_results import TextView
from relakit.report.example_choice import telling_heads, telling_layer
from relakit.report.figure_files import drawable
from relakit.report.heat_map_panels import Panel, draw_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TELLING_TOKENS: Final = 16
"""A text of about this length is interesting and still legible in print."""
MOST_TOKENS: Final = 60
"""A longer text would not fit on a printed page."""
SHOWN_TEXTS: Final = 3
GRID_CELL: Final = 0.22
"""Inches"""


def draw_by_head(analysis: ModelAnalysis, views: Sequence[TextView]) -> "Figure":
    """Sparsity, null rate and weight on the first token: a row per layer, a cell per head."""
    from matplotlib.figure import Figure

    result = analysis.main
    tables = {
        "sparsity": result.sparsity,
        "null rate": result.null_rate,
        "weight on the first token": result.first_sink,
    }
    width = max(2.2, GRID_CELL * result.heads + 0.8)
    height = max(1.4, GRID_CELL * result.layers + 1.1)
    figure = Figure(figsize=(width * len(tables) + 0.9, height), layout="constrained")
    axes = figure.subplots(1, len(tables), squeeze=False)[0]
    for ax, (title, values) in zip(axes, tables.items(), strict=True):
        image = ax.imshow(_numbers(values), vmin=0, vmax=1, cmap="Blues", aspect="auto")
        ax.set_title(title, loc="left", fontsize=10)
        ax.set_xlabel("head")
        for axis, count in ((ax.xaxis, result.heads), (ax.yaxis, result.layers)):
            places = range(0, count, max(1, count // 12))
            axis.set_ticks(list(places), [str(number + 1) for number in places])
        ax.tick_params(length=0, labelsize=8)
    axes[0].set_ylabel("layer")
    figure.colorbar(image, ax=axes, fraction=0.03, pad=0.01)
    figure.suptitle(drawable(analysis.name), fontsize=10)
    return figure


def _numbers(values: HeadValues) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(values, dtype=np.float64)  # None becomes NaN


def draw_text_heads(analysis: ModelAnalysis, views: Sequence[TextView]) -> "Figure | None":
    """Texts, one per row, in several heads of the layer whose heads differ most."""
    layer = telling_layer(analysis)
    printable = [view for view in views if len(view.tokens) <= MOST_TOKENS]
    printable.sort(key=lambda view: abs(len(view.tokens) - TELLING_TOKENS))
    rows = [
        [_panel(analysis, view, layer, head) for head in telling_heads(analysis, layer)]
        for view in printable[:SHOWN_TEXTS]
    ]
    return draw_panels(rows, f"{analysis.name}, self-attention of layer {layer + 1}")


def _panel(analysis: ModelAnalysis, view: TextView, layer: int, head: int) -> Panel:
    rate = analysis.main.null_rate[layer][head]
    note = "" if rate is None else f" (null rate {rate:.0%})"
    return Panel(
        f"head {head + 1}{note}",
        view.weights[layer, head],
        rows=view.tokens,
        columns=view.tokens,
        seen=view.seen[layer],
    )

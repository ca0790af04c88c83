"""Figures 7 to 10: cross-attention of some heads on some sentences, with words on the axes.

A figure is None if there is no sentence to show.
"""

from collections.abc import Sequence
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
from relakit.report.heat_map_panels import Panel, draw_panels
from relakit.report.packing import cross_null_rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

END: Final = "⟨end⟩"


def draw_heads(analysis: ModelAnalysis, views: Sequence[SentenceView]) -> "Figure | None":
    """Figure 7: a sentence in several heads of the layer whose heads differ most."""
    layer = telling_layer(analysis)
    rows = [_head_panels(analysis, view, layer) for view in usual_sentences(views, 1)]
    return draw_panels(rows, f"{analysis.name}, {_layer(layer)}")


def draw_examples(analysis: ModelAnalysis, views: Sequence[SentenceView]) -> "Figure | None":
    """Figure 8: more sentences in the same heads."""
    layer = telling_layer(analysis)
    rows = [_head_panels(analysis, view, layer) for view in usual_sentences(views, 4)[1:]]
    return draw_panels(rows, f"{analysis.name}, {_layer(layer)}")


def draw_clauses(analysis: ModelAnalysis, views: Sequence[SentenceView]) -> "Figure | None":
    """Figure 9: sentences with several clauses in the same heads."""
    layer = telling_layer(analysis)
    rows = [_head_panels(analysis, view, layer) for view in clause_sentences(views, 2)]
    return draw_panels(rows, f"{analysis.name}, {_layer(layer)}, several clauses")


def draw_quality(analysis: ModelAnalysis, views: Sequence[SentenceView]) -> "Figure | None":
    """Figure 10: pairs with the lowest null rates on top, pairs with the highest below."""
    layer = telling_layer(analysis)
    head = nullable_aligner(analysis, layer)
    rows = [
        [_panel(view, layer, head, _quality_title(view)) for view in group]
        for group in by_null_rate(views, 3)
    ]
    order = "pairs with the lowest null rates above, with the highest below"
    return draw_panels(rows, f"{analysis.name}, {_layer(layer)}, head {head + 1}:", order)


def _quality_title(view: SentenceView) -> str:
    return f"pair {view.index + 1}\nnull rate of all heads {cross_null_rate(view):.0%}"


def _layer(layer: int) -> str:
    return f"cross-attention of layer {layer + 1}"


def _head_panels(analysis: ModelAnalysis, view: SentenceView, layer: int) -> list[Panel]:
    rates = analysis.kind("cross").null_rate[layer]
    panels = []
    for head in telling_heads(analysis, layer):
        rate = rates[head]
        note = "" if rate is None else f" (null rate {rate:.0%})"
        panels.append(_panel(view, layer, head, f"head {head + 1}{note}"))
    return panels


def _panel(view: SentenceView, layer: int, head: int, title: str) -> Panel:
    sources = [view.source[start:end] for start, end in view.source_words]
    targets = [view.target[start:end] for start, end in view.target_words]
    weights = cross_word_weights(view, layer, head)
    return Panel(title, weights, rows=[*targets, END], columns=[*sources, END])


def cross_word_weights(view: SentenceView, layer: int, head: int) -> npt.NDArray[np.float64]:
    """``[target words + 1, source words + 1]``; the end of the sentence comes last on both axes."""
    sources, targets = len(view.source_words), len(view.target_words)
    return word_weights(
        view.weights["cross"][layer, head],
        np.append(view.target_token_words, targets).astype(np.int64),
        np.append(view.source_token_words, sources).astype(np.int64),
        target_count=targets + 1,
        source_count=sources + 1,
    )

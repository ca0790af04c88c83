"""Which layer, heads and sentences are worth a picture."""

from collections.abc import Sequence
from typing import Final

from relakit.analysis.results import ModelAnalysis, SentenceView
from relakit.analysis.tags import COMMAS
from relakit.report.packing import cross_null_rate

SHOWN_HEADS: Final = 4
TELLING_WORDS: Final = 12
"""A sentence of about this length is interesting and still legible in print."""
MOST_WORDS: Final = 45
"""A longer sentence would not fit on a printed page."""
MOST_TOKENS: Final = 200
"""The same, for words that have very many tokens"""
SILENT: Final = 0.99
"""A head with this null rate or a higher one plays no part."""


def is_silent(null_rate: float) -> bool:
    """Whether a head is nearly always null, so that there is nothing to see in it."""
    return null_rate >= SILENT


def telling_layer(analysis: ModelAnalysis) -> int:
    """The cross-attention layer whose heads differ most in null rate, from 0.

    For a model that reads texts, the self-attention layer.
    """
    variances = [-1.0 if v is None else v for v in analysis.main.null_variance()]
    return variances.index(max(variances))


def telling_heads(analysis: ModelAnalysis, layer: int) -> list[int]:
    """The head with the lowest null rate, two that are specialised, and the one with the highest.

    A specialised head is null after words of one class and not after those of another. Heads that
    are nearly always null are chosen only if there are not enough others. Heads are numbered from 0
    and given in the order of their null rates.
    """
    rates = _null_rates(analysis, layer)
    by_rate = sorted(range(len(rates)), key=lambda head: (rates[head], head))
    while len(by_rate) > SHOWN_HEADS and is_silent(rates[by_rate[-1]]):
        by_rate.pop()
    if len(by_rate) <= SHOWN_HEADS:
        return by_rate
    between = sorted(
        by_rate[1:-1], key=lambda head: _specialisation(analysis, layer, head), reverse=True
    )
    chosen = {by_rate[0], by_rate[-1], *between[: SHOWN_HEADS - 2]}
    return [head for head in by_rate if head in chosen]


def _specialisation(analysis: ModelAnalysis, layer: int, head: int) -> float:
    """The largest difference in null rate between classes that are not rare."""
    classes = analysis.classes
    if classes is None:
        return 0.0
    rates = [
        rate
        for number, rate in enumerate(classes.null_rate[layer][head])
        if rate is not None and classes.is_frequent(number)
    ]
    return max(rates) - min(rates) if rates else 0.0


def _null_rates(analysis: ModelAnalysis, layer: int) -> list[float]:
    return [0.0 if rate is None else rate for rate in analysis.main.null_rate[layer]]


def nullable_aligner(analysis: ModelAnalysis, layer: int) -> int:
    """The layer's head, from 0, that aligns best among those that are sometimes null.

    Without gold links, it is the one among them that is null least often. If no head is sometimes
    null, it is chosen among all heads.
    """
    rates = _null_rates(analysis, layer)
    heads = [head for head, rate in enumerate(rates) if 0.05 <= rate <= 0.95]
    heads = heads or [*range(len(rates))]
    if analysis.alignment is None:
        return min(heads, key=rates.__getitem__)
    scores = analysis.alignment.scores(analysis.alignment.best_reading).heads[layer]
    return min(heads, key=lambda head: scores[head].aer)


def usual_sentences(views: Sequence[SentenceView], count: int) -> list[SentenceView]:
    """At most ``count`` sentences of a length that can be read in print."""
    return sorted(_printable(views), key=lambda view: abs(_words(view) - TELLING_WORDS))[:count]


def clause_sentences(views: Sequence[SentenceView], count: int) -> list[SentenceView]:
    """Sentences of several clauses: printable ones with a comma first, then the longest."""
    return sorted(_printable(views), key=lambda view: (not _has_comma(view), -_words(view)))[:count]


def by_null_rate(
    views: Sequence[SentenceView], count: int
) -> tuple[list[SentenceView], list[SentenceView]]:
    """The pairs with the lowest and with the highest cross-attention null rate.

    Only printable pairs, preferably with more than a few words; no pair is in both lists, which
    have the same length.
    """
    printable = _printable(views)
    telling = [view for view in printable if _words(view) >= TELLING_WORDS / 3]
    ranked = sorted(telling if len(telling) > 1 else printable, key=cross_null_rate)
    count = min(count, len(ranked) // 2)
    return ranked[:count], ranked[len(ranked) - count :]


def _printable(views: Sequence[SentenceView]) -> list[SentenceView]:
    """The views that have words on both sides, but not too many for a figure."""
    return [
        view
        for view in views
        if view.source_words
        and view.target_words
        and _words(view) <= MOST_WORDS
        and max(len(view.source_token_spans), len(view.target_token_spans)) <= MOST_TOKENS
    ]


def _words(view: SentenceView) -> int:
    return max(len(view.source_words), len(view.target_words))


def _has_comma(view: SentenceView) -> bool:
    return not COMMAS.isdisjoint(view.source + view.target)

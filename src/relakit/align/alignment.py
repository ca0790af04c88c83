"""The links of one sentence pair, and the numbers behind them. No torch here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from relakit.align.settings import Symmetrization
from relakit.align.symmetrize import symmetrize
from relakit.analysis.attention_weights import null_query_share
from relakit.analysis.gold import GoldAlignment
from relakit.analysis.links import (
    EndWeight,
    Link,
    Links,
    best_source_words,
    links_of,
    weights_between_words,
)
from relakit.analysis.word_map import NO_WORD, Floats, Integers
from relakit.broken_model import BrokenModelError

LEAST_SCORE: Final = -2.0
"""The score above which an alignment layer gives weight. Scores are log-odds: a link with odds of
one to seven counts if nothing fits better."""
CERTAIN_WEIGHT: Final = 4.0
"""The weight of a score as far above 0 as `LEAST_SCORE` is below: odds of seven to one."""


@dataclass(frozen=True)
class Alignment:
    """Links between the words of a pair, or between its tokens."""

    scores: Mapping[Link, float]
    """The links, in order, each with its share of the target word's attention, from 0 to 1"""
    source_count: int
    """How many words the source has"""
    target_count: int
    null_rate: float | None = None
    """Share of the target's tokens that attend to nothing; None if nothing was computed"""

    @property
    def links(self) -> Links:
        return frozenset(self.scores)

    @property
    def unaligned_source(self) -> list[int]:
        """Source words without a link."""
        return sorted(set(range(self.source_count)) - {source for source, _ in self.scores})

    @property
    def unaligned_target(self) -> list[int]:
        return sorted(set(range(self.target_count)) - {target for _, target in self.scores})

    def reversed(self) -> "Alignment":
        """The same links with source and target exchanged."""
        scores = {(target, source): score for (source, target), score in self.scores.items()}
        return Alignment(_ordered(scores), self.target_count, self.source_count, self.null_rate)


@dataclass(frozen=True)
class TokenWords:
    """Which word each token of a pair belongs to, and how many words there are."""

    source: Integers
    target: Integers
    source_count: int
    target_count: int


def read_alignment(
    weights: Floats,
    words: TokenWords,
    *,
    shift: int,
    end: EndWeight = "ignored",
) -> Alignment:
    """Link each target word with the source word that it attends to most, if any.

    Args:
        weights: those of one head, or the mean of several, laid out as in `CrossAttention`:
            ``[target tokens + 1, source tokens + 1]``.
        words: the words that the tokens belong to.
        shift: 0 to read a token's attention in the step that predicts it, 1 in the next.
        end: the effect of weight on the source's end-of-sentence token.
    """
    rows = weights[shift : shift + len(words.target)]
    to_words, to_end = _between_words(weights, words, shift)
    competing = to_end if end == "competes" else np.zeros(len(to_end))
    total = to_words.sum(1) + competing
    best = best_source_words(to_words, competing if end == "competes" else None)
    links = [(int(source), t) for t, source in enumerate(best) if source != NO_WORD]
    scores = {link: float(to_words[link[1], link[0]] / total[link[1]]) for link in links}
    return Alignment(_ordered(scores), words.source_count, words.target_count, _null_rate(rows))


def link_weights(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The weights that an alignment layer gives for these scores."""
    weights: npt.NDArray[np.float32] = np.maximum(scores - LEAST_SCORE, 0)
    return weights


def read_layer_alignment(weights: Floats, words: TokenWords) -> Alignment:
    """Link words that are each other's best match, if there is any weight between them.

    Words with more than `CERTAIN_WEIGHT` between them are linked in any case.

    Args:
        weights: those of an alignment layer, ``[target tokens + 1, source tokens + 1]``; the last
            row and the last column, for the ends of the sentences, do not count.
        words: the words that the tokens belong to.
    """
    rows = weights[: len(words.target), : len(words.source)]
    between = _best_between_words(rows, words)
    if np.isnan(between).any():
        raise BrokenModelError
    is_best = (between == between.max(1, keepdims=True, initial=0)) & (
        between == between.max(0, keepdims=True, initial=0)
    )
    linked = (is_best & (between > 0)) | (between > CERTAIN_WEIGHT)
    total = between.sum(1)
    scores = {
        (int(source), int(target)): float(between[target, source] / total[target])
        for target, source in np.argwhere(linked)
    }
    return Alignment(_ordered(scores), words.source_count, words.target_count, _null_rate(rows))


def _best_between_words(rows: Floats, words: TokenWords) -> npt.NDArray[np.float64]:
    """The largest weight between the tokens of two words, ``[target words, source words]``."""
    targets, sources = (np.flatnonzero(of != NO_WORD) for of in (words.target, words.source))
    best = np.zeros((words.target_count, words.source_count))
    places = words.target[targets][:, None], words.source[sources][None, :]
    np.maximum.at(best, places, rows[np.ix_(targets, sources)])
    return best


def _ordered(scores: Mapping[Link, float]) -> dict[Link, float]:
    return dict(sorted(scores.items()))


def _null_rate(rows: Floats) -> float | None:
    """The share of queries without weight; None if there are no queries."""
    return null_query_share(rows) if len(rows) else None


def read_mutual_links(
    weights: Floats, words: TokenWords, *, shift: int, end: EndWeight = "ignored"
) -> GoldAlignment:
    """Links that one model's attention supports in both directions.

    A link is sure if the target word attends most to the source word, and no other target word
    attends more to that source word. If only one of these holds, the link is possible.
    Arguments as for `read_alignment`.
    """
    to_words, to_end = _between_words(weights, words, shift)
    if end == "competes":  # a target word that attends most to the end has no link at all
        to_words = np.where((to_end > to_words.max(1, initial=0))[:, None], 0.0, to_words)
    there = links_of(to_words)
    back = frozenset((source, target) for target, source in links_of(to_words.T))
    return GoldAlignment(there & back, there | back)


def _between_words(weights: Floats, words: TokenWords, shift: int) -> tuple[Floats, Floats]:
    return weights_between_words(
        weights,
        words.source,
        words.target,
        shift=shift,
        source_count=words.source_count,
        target_count=words.target_count,
    )


def join_directions(forward: Alignment, backward: Alignment, method: Symmetrization) -> Alignment:
    """Combine the alignments of two directions into one.

    Args:
        forward: from the model that translates source to target.
        backward: from the other model, whose source is the pair's target.
        method: see `symmetrize`.

    Returns:
        The score of a link is the mean over both directions, with 0 for a direction that lacks it.
        The null rate is that of ``forward``.
    """
    back = backward.reversed()
    links = sorted(symmetrize(forward.links, back.links, method))
    scores = {
        link: (forward.scores.get(link, 0.0) + back.scores.get(link, 0.0)) / 2 for link in links
    }
    return Alignment(scores, forward.source_count, forward.target_count, forward.null_rate)

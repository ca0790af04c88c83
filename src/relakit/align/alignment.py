"""The links of one sentence pair, with what they rest on. No torch here."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from relakit.align.settings import Symmetrization
from relakit.align.symmetrize import symmetrize
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


@dataclass(frozen=True)
class Alignment:
    """Links between the words of a pair, or between its tokens."""

    scores: Mapping[Link, float]
    """The links, in order; of each the share of the target word's attention, from 0 to 1"""
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
        """The words without a link."""
        return sorted(set(range(self.source_count)) - {source for source, _ in self.scores})

    @property
    def unaligned_target(self) -> list[int]:
        return sorted(set(range(self.target_count)) - {target for _, target in self.scores})

    def reversed(self) -> "Alignment":
        """The same links with source and target exchanged."""
        scores = {(target, source): score for (source, target), score in self.scores.items()}
        return Alignment(
            dict(sorted(scores.items())), self.target_count, self.source_count, self.null_rate
        )


@dataclass(frozen=True)
class TokenWords:
    """To which word each token of a pair belongs, and how many words there are."""

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
    several: bool = False,
) -> Alignment:
    """Link each target word with the source word that it attends to most, if to any.

    Args:
        weights: of one head, or the mean of several, ``[target tokens + 1, source tokens + 1]``, as
            `CrossAttention` has them.
        words: of the tokens.
        shift: 0 to read a token's attention in the step that predicts it, 1 in the next.
        end: what weight on the source's end-of-sentence token does.
        several: link it with every source word that it attends to, as is meant by the weights of an
            alignment layer.
    """
    rows = weights[shift : shift + len(words.target)]
    to_words, to_end = _between_words(weights, words, shift)
    competing = to_end if end == "competes" else np.zeros(len(to_end))
    total = to_words.sum(1) + competing
    if several:
        if np.isnan(to_words).any():
            raise BrokenModelError
        links = [(int(source), int(target)) for target, source in np.argwhere(to_words > 0)]
    else:
        best = best_source_words(to_words, competing if end == "competes" else None)
        links = [(int(source), t) for t, source in enumerate(best) if source != NO_WORD]
    scores = {link: float(to_words[link[1], link[0]] / total[link[1]]) for link in sorted(links)}
    null = 1.0 - np.any(rows != 0, axis=1).mean() if len(rows) else None
    return Alignment(
        scores, words.source_count, words.target_count, None if null is None else float(null)
    )


def read_mutual_links(
    weights: Floats, words: TokenWords, *, shift: int, end: EndWeight = "ignored"
) -> GoldAlignment:
    """Links that one model's attention supports in both directions.

    Sure ones are between words of which the target attends most to the source, and of all target
    words no other attends more to that source. Where only one of both holds, a link is possible.
    Arguments as for `read_alignment`.
    """
    to_words, to_end = _between_words(weights, words, shift)
    if end == "competes":  # then a target word that attends to it most has no link at all
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
    """One alignment from those of two directions.

    Args:
        forward: of the model from source to target.
        backward: of the other one, its source being the pair's target.
        method: see `symmetrize`.

    Returns:
        A link's score is the mean of both directions', 0 where one does not have it. The null rate
        is that of ``forward``.
    """
    back = backward.reversed()
    links = sorted(symmetrize(forward.links, back.links, method))
    scores = {
        link: (forward.scores.get(link, 0.0) + back.scores.get(link, 0.0)) / 2 for link in links
    }
    return Alignment(scores, forward.source_count, forward.target_count, forward.null_rate)

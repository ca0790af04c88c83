"""Links between words: read from attention, and scored against gold links."""

import math
from collections.abc import Iterable, Set
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from relakit.analysis.words import NO_WORD, Floats

Link: TypeAlias = tuple[int, int]
"""Source word and target word, both from 0."""
Links: TypeAlias = frozenset[Link]
Reading: TypeAlias = Literal["normal", "shifted"]
"""When the attention of a target token is read: ``normal`` in the step that predicts it, and
``shifted`` in the next one, of which it is the input."""
READINGS: Final[tuple[Reading, ...]] = get_args(Reading)


@dataclass(frozen=True)
class GoldAlignment:
    """What people say about the links of a sentence pair."""

    sure: Links
    possible: Links = frozenset()
    """Always includes the sure links, whether they were given or not."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sure", frozenset(self.sure))
        object.__setattr__(self, "possible", frozenset(self.possible) | self.sure)

    def reversed(self) -> "GoldAlignment":
        """The links of the pair with source and target exchanged."""
        return GoldAlignment(
            frozenset((target, source) for source, target in self.sure),
            frozenset((target, source) for source, target in self.possible),
        )


@dataclass(frozen=True)
class AlignmentScore:
    """Counts of links, over one pair or a corpus, and the scores that follow from them.

    A score is NaN where nothing was counted. The sum of two is the score of both corpora together.
    """

    found: int
    """Links found, |A|"""
    sure: int
    """Sure links, |S|"""
    found_sure: int
    """Found and sure, |A∩S|"""
    found_possible: int
    """Found and possible, |A∩P|"""

    @property
    def aer(self) -> float:
        """Alignment error rate (Och and Ney): 1 - (|A∩S| + |A∩P|) / (|A| + |S|). 0 is perfect."""
        return 1 - _ratio(self.found_sure + self.found_possible, self.found + self.sure)

    @property
    def precision(self) -> float:
        """|A∩P| / |A|"""
        return _ratio(self.found_possible, self.found)

    @property
    def recall(self) -> float:
        """|A∩S| / |S|"""
        return _ratio(self.found_sure, self.sure)

    def __add__(self, other: "AlignmentScore") -> "AlignmentScore":
        return AlignmentScore(
            self.found + other.found,
            self.sure + other.sure,
            self.found_sure + other.found_sure,
            self.found_possible + other.found_possible,
        )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def alignment_error_rate(
    found: Iterable[Set[Link]],
    sure: Iterable[Set[Link]],
    possible: Iterable[Set[Link]] | None = None,
) -> AlignmentScore:
    """The score of a corpus: links are counted over all pairs, then divided.

    Args:
        found: the links of each pair that are to be judged, A.
        sure: the sure links of each pair, S.
        possible: the possible links of each pair, P; sure links are possible without being named.
            None: the sure ones are all.

    Raises:
        ValueError: the three do not have the same number of pairs.
    """
    total = AlignmentScore(0, 0, 0, 0)
    if possible is None:
        sure = list(sure)
        possible = sure
    for number, links in enumerate(zip_longest(found, sure, possible), 1):
        a, s, p = links
        if a is None or s is None or p is None:
            names = ("found", "sure", "possible")
            short = [name for name, x in zip(names, links, strict=True) if x is None]
            raise ValueError(
                f"pair {number:,} has no links in {' and '.join(short)}: give a set for each pair, "
                "an empty one if there are no links"
            )
        total += AlignmentScore(len(a), len(s), len(a & s), len(a & (p | s)))
    return total


def best_source_words(weights: Floats, end_weights: Floats | None = None) -> npt.NDArray[np.int64]:
    """The source word that each target word attends to most, the first of them; or `NO_WORD`.

    There is none where all weights are 0. The end-of-sentence token is no word: its weight does not
    count, however large it is, unless ``end_weights`` is given; then there is none where it is
    larger than every word's.

    Args:
        weights: between words, ``[..., target words, source words]``.
        end_weights: of the source's end-of-sentence token, ``[..., target words]``.

    Raises:
        ValueError: a weight is NaN.
    """
    if np.isnan(weights).any():
        raise ValueError("attention weights must be numbers, got NaN: the model is broken")
    if weights.shape[-1] == 0:
        return np.full(weights.shape[:-1], NO_WORD, dtype=np.int64)
    most = weights.max(-1)
    has_link = most > 0 if end_weights is None else (most > 0) & (most >= end_weights)
    return np.where(has_link, weights.argmax(-1), NO_WORD)


def links_of(weights: Floats, end_weights: Floats | None = None) -> Links:
    """One link for each target word, to the source word of `best_source_words`, if there is one.

    Args:
        weights: between words, of one head or one layer, ``[target words, source words]``.
        end_weights: ``[target words]``, see `best_source_words`.
    """
    if weights.ndim != 2:
        raise ValueError(
            f"weights must have the shape [target words, source words], got {weights.shape}"
        )
    best = best_source_words(weights, end_weights)
    return frozenset(
        (int(source), target) for target, source in enumerate(best) if source != NO_WORD
    )

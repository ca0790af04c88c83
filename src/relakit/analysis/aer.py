"""The alignment error rate: links found, counted against gold links. No torch here.

A target word that attends to nothing (null) has no link. It adds nothing to the links found, |A|:
it cannot lower precision, but every sure link of that word is missed, which lowers recall and
raises the error rate. Where the word has no gold link either, it costs nothing.
"""

import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from relakit.analysis.gold import GoldAlignment
from relakit.analysis.links import READINGS, Link, Links, Reading
from relakit.analysis.word_map import NO_WORD


@dataclass(frozen=True)
class AlignmentScore:
    """Link counts over one pair or a corpus, and the scores computed from them.

    A score is NaN where nothing was counted. Adding two gives the score of both corpora together.
    """

    found: int
    """Links found, |A|"""
    sure: int
    """Sure links, |S|"""
    found_sure: int
    """Found and sure, |A∩S|"""
    found_possible: int
    """Found and possible, |A∩P|"""

    @classmethod
    def of(cls, found: Set[Link], gold: GoldAlignment) -> "AlignmentScore":
        """Score the links found in one pair."""
        return cls(len(found), len(gold.sure), len(found & gold.sure), len(found & gold.possible))

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

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 if no link is right, or none is found."""
        if self.sure and not self.found:
            return 0.0
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else total

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
    """The score of a corpus: links are counted over all pairs before dividing.

    Args:
        found: the links to judge for each pair, A.
        sure: the sure links of each pair, S.
        possible: the possible links of each pair, P; sure links count as possible without being
            listed. None: only the sure links are possible.

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


@dataclass(frozen=True)
class AttentionScores:
    """Alignment scores of all layers and heads. Layers and heads are numbered from 0.

    Raises:
        ValueError: there is no layer or no head, or not every layer has both kinds of scores.
    """

    heads: tuple[tuple[AlignmentScore, ...], ...]
    """By layer, then head"""
    layers: tuple[AlignmentScore, ...]
    """Scores of each layer's attention averaged over its heads"""

    def __post_init__(self) -> None:
        if not self.layers or len(self.layers) != len(self.heads) or not all(self.heads):
            raise ValueError(
                f"alignment scores need a layer and a head at least, and both for each layer, got "
                f"{len(self.layers)} layers, and heads of {len(self.heads)}"
            )

    @property
    def best_heads(self) -> tuple[int, ...]:
        """The head with the lowest error rate in each layer."""
        return tuple(_lowest(layer) for layer in self.heads)

    @property
    def best_head(self) -> tuple[int, int]:
        """Layer and head with the lowest error rate of all."""
        best = self.best_heads
        layer = _lowest([scores[head] for scores, head in zip(self.heads, best, strict=True)])
        return layer, best[layer]

    @property
    def aol(self) -> float:
        """AoL: mean over layers of the error rate of the layer's average attention."""
        return math.fsum(score.aer for score in self.layers) / len(self.layers)

    @property
    def aoh(self) -> float:
        """AoH: mean over layers of the error rate of the layer's best head."""
        best = zip(self.heads, self.best_heads, strict=True)
        return math.fsum(scores[head].aer for scores, head in best) / len(self.heads)


def _lowest(scores: Sequence[AlignmentScore]) -> int:
    """The index of the first score with the lowest error rate."""
    return min(range(len(scores)), key=lambda index: scores[index].aer)


class LinkCounts:
    """Links of all layers and heads, counted against gold links pair by pair.

    `links` has the shape ``[3, readings, layers, heads + 1]``: links found, how many of them are
    sure, and how many are possible. The last head is the layer's average.
    """

    def __init__(self, layers: int, heads: int) -> None:
        self.links = np.zeros((3, len(READINGS), layers, heads + 1), dtype=np.int64)
        self.sure = 0
        self.pairs = 0

    def add(
        self, links: npt.NDArray[np.int64], gold: GoldAlignment, source_words: int
    ) -> npt.NDArray[np.int64]:
        """Count the links of one pair, and return what they add to `links`.

        Args:
            links: the source word of each target word, as `links_of_heads` returns it.
            gold: the pair's gold links.
            source_words: how many words the source has.
        """
        target_words = links.shape[-1]
        sure = _matrix(gold.sure, target_words, source_words)
        possible = _matrix(gold.possible, target_words, source_words)
        rows = np.arange(target_words)
        counted: npt.NDArray[np.int64] = np.stack(
            [links != NO_WORD, sure[rows, links], possible[rows, links]]
        ).sum(-1)
        self.links += counted
        self.sure += len(gold.sure)
        self.pairs += 1
        return counted

    def scores(self, reading: Reading) -> AttentionScores:
        layers = [
            [
                AlignmentScore(found, self.sure, found_sure, found_possible)
                for found, found_sure, found_possible in zip(*heads, strict=True)
            ]
            for heads in zip(*self.links[:, READINGS.index(reading)].tolist(), strict=True)
        ]
        return AttentionScores(
            heads=tuple(tuple(scores[:-1]) for scores in layers),
            layers=tuple(scores[-1] for scores in layers),
        )


def _matrix(links: Links, target_words: int, source_words: int) -> npt.NDArray[np.bool_]:
    """``[target words, source words + 1]``; the last column, for `NO_WORD`, has no link."""
    matrix = np.zeros((target_words, source_words + 1), dtype=np.bool_)
    for source, target in links:
        matrix[target, source] = True
    return matrix

"""Links of all layers and heads, counted for each sentence pair. No torch here."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relakit.analysis.results import AlignmentResult


class PairCount(NamedTuple):
    """The link counts of one pair."""

    pair: int
    """The number of the pair, from 0"""
    links: npt.NDArray[np.int64]
    """Counted as in `LinkCounts`"""
    sure: int
    """Sure links"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairLinks:
    """The counts that an `AlignmentResult` sums up, in the order of the pairs."""

    result: AlignmentResult
    indices: npt.NDArray[np.int64]
    """``[pairs]``: which pairs have gold links, from 0"""
    links: npt.NDArray[np.int32]
    """``[pairs, 3, readings, layers, heads + 1]``: links found, how many of them are sure, and how
    many are possible. The last head is the layer's average."""
    sure: npt.NDArray[np.int64]
    """``[pairs]``: sure links"""

    @classmethod
    def from_counts(cls, counts: Iterable[PairCount], *, result: AlignmentResult) -> "PairLinks":
        """Build it from counts in any order."""
        ordered = sorted(counts, key=lambda count: count.pair)
        return cls(
            result=result,
            indices=np.array([count.pair for count in ordered]),
            links=np.stack([count.links.astype(np.int32) for count in ordered]),
            sure=np.array([count.sure for count in ordered]),
        )

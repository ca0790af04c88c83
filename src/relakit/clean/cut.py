"""Which pairs are kept: a share of the best, or those up to a limit. No torch here."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relakit.clean.score_table import Numbers

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Cut:
    """Which pairs of a corpus are kept."""

    badness: Numbers
    """One score per pair; NaN for pairs that cannot be kept"""
    kept: Mask
    limit: float
    """The badness of the worst pair that is kept, or the limit that was set"""

    @property
    def rankable(self) -> int:
        """How many pairs could be kept."""
        return int((~np.isnan(self.badness)).sum())


def cut_at(badness: Numbers, limit: float) -> Cut:
    """Keep pairs that are no worse than a limit."""
    with np.errstate(invalid="ignore"):
        return Cut(badness, badness <= limit, limit)


def keep_best(badness: Numbers, share: float) -> Cut:
    """Keep exactly ``round(share * pairs that can be kept)``; among equals, the first ones.

    Raises:
        ValueError: the share leaves nothing, or is not a share.
    """
    if not 0 < share <= 1:
        raise ValueError(f"--keep must be above 0 and at most 1, got {share:g}")
    places = np.flatnonzero(~np.isnan(badness))
    count = round(share * len(places))
    kept = np.zeros(len(badness), dtype=np.bool_)
    if not count:
        raise ValueError(f"--keep {share:g} of {len(places):,} pairs that can be kept leaves none")
    rankable = badness[places]
    limit = float(np.partition(rankable, count - 1)[count - 1])
    kept[places[rankable < limit]] = True
    equal = places[rankable == limit]
    kept[equal[: count - int(kept.sum())]] = True
    return Cut(badness, kept, limit)

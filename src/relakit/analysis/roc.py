"""How well scores separate two groups: the area under the ROC curve. No torch here.

This is the probability that a random member of one group scores higher than a random member of the
other, with ties counting half: 1 is perfect, 0.5 is chance, 0 is perfect the wrong way round.
"""

import math
import statistics

import numpy as np
import numpy.typing as npt

from relakit.analysis.estimate import CONFIDENCE, Estimate, check_confidence


def auc(scores: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """The area under the ROC curve of scores that should be higher where the label is True.

    Args:
        scores: one for each member of both groups.
        labels: True or False for each score.

    Raises:
        ValueError: a score is NaN, a group is empty, or there are more or fewer labels than scores.
    """
    high, low = _groups(scores, labels)
    # Integers keep this exact: 2 for a member below, 1 for a tie.
    return int(_twice_below(low, high).sum()) / (2 * len(high) * len(low))


def auc_estimate(
    scores: npt.ArrayLike, labels: npt.ArrayLike, confidence: float = CONFIDENCE
) -> Estimate:
    """`auc`, with the confidence interval of DeLong, DeLong and Clarke-Pearson (1988).

    The interval uses the normal approximation, clipped to between 0 and 1. If the groups do not
    overlap at all, its width is 0, whatever their size.

    Raises:
        ValueError: as in `auc`, or a group has fewer than two members.
    """
    check_confidence(confidence)
    high, low = _groups(scores, labels)
    if min(len(high), len(low)) < 2:
        raise ValueError(
            f"an interval needs two scores at least of either label, got {len(high)} of True and "
            f"{len(low)} of False"
        )
    value = auc(scores, labels)
    # For each member, the share of the other group that lies on the correct side of it.
    of_high = _twice_below(low, high) / (2 * len(low))
    of_low = 1 - _twice_below(high, low) / (2 * len(high))
    variance = of_high.var(ddof=1) / len(high) + of_low.var(ddof=1) / len(low)
    half = statistics.NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(variance)
    return Estimate(value=value, low=max(0.0, value - half), high=min(1.0, value + half))


def _groups(
    scores: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The scores with a True label, and the scores with a False label."""
    numbers = np.asarray(scores, dtype=np.float64)
    is_high = np.asarray(labels, dtype=np.bool_)
    if numbers.ndim != 1 or numbers.shape != is_high.shape:
        raise ValueError(
            f"scores and labels must be lists of one length, got shapes {numbers.shape} and "
            f"{is_high.shape}"
        )
    if np.isnan(numbers).any():
        raise ValueError(f"scores must be numbers, got NaN at {int(np.isnan(numbers).argmax())}")
    if is_high.all() or not is_high.any():
        raise ValueError(
            f"there must be labels of both kinds, got {int(is_high.sum()):,} True and "
            f"{int((~is_high).sum()):,} False"
        )
    return numbers[is_high], numbers[~is_high]


def _twice_below(
    others: npt.NDArray[np.float64], scores: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """For each score, twice the number of others below it plus the number of equal ones."""
    ordered = np.sort(others)
    return np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")

"""The area under the ROC curve and its interval, against comparisons of every two scores."""

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relakit.analysis import auc, auc_estimate

Scored = list[tuple[float, bool]]
# Few different numbers, so that many scores are equal.
SCORED = st.lists(
    st.tuples(st.one_of(st.sampled_from([-1.0, 0.0, 0.5]), st.floats(-2, 2)), st.booleans()),
    min_size=4,
    max_size=30,
).filter(lambda scored: 2 <= sum(label for _, label in scored) <= len(scored) - 2)


def beaten(high: float, low: float) -> Fraction:
    return Fraction(int(high > low) * 2 + int(high == low), 2)


def groups(scored: Scored) -> tuple[list[float], list[float]]:
    return [s for s, label in scored if label], [s for s, label in scored if not label]


def slow_area(scored: Scored) -> Fraction:
    high, low = groups(scored)
    return sum((beaten(h, s) for h in high for s in low), Fraction(0)) / (len(high) * len(low))


def slow_half_width(scored: Scored, confidence: float) -> float:
    """DeLong's, from the mean of comparisons of each score with the other group."""
    high, low = groups(scored)
    of_high = [statistics.mean(beaten(h, s) for s in low) for h in high]
    of_low = [statistics.mean(beaten(h, s) for h in high) for s in low]
    variance = statistics.variance(of_high) / len(high) + statistics.variance(of_low) / len(low)
    return statistics.NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(variance)


@settings(deadline=None)
@given(SCORED, st.sampled_from([0.5, 0.95]))
def test_against_comparisons_of_every_two_scores(scored: Scored, confidence: float) -> None:
    scores, labels = zip(*scored, strict=True)
    exact = slow_area(scored)
    assert auc(scores, labels) == exact.numerator / exact.denominator
    estimate = auc_estimate(scores, labels, confidence)
    half = slow_half_width(scored, confidence)
    assert estimate.value == auc(scores, labels)
    assert estimate.low == pytest.approx(max(0.0, float(exact) - half))
    assert estimate.high == pytest.approx(min(1.0, float(exact) + half))


@settings(deadline=None)
@given(SCORED)
def test_only_the_order_matters(scored: Scored) -> None:
    scores, labels = map(np.array, zip(*scored, strict=True))
    area = auc(scores, labels)
    ranks = np.unique(scores, return_inverse=True)[1]
    assert auc(np.exp(ranks / 7), labels) == area
    assert auc(-scores, labels) == pytest.approx(1 - area)
    assert auc(scores, ~labels) == pytest.approx(1 - area)


def test_known_areas() -> None:
    assert auc([1, 2, 3, 4], [False, False, True, True]) == 1.0
    assert auc([1, 2, 3, 4], [True, True, False, False]) == 0.0
    assert auc([1, 1, 1, 1], [True, False, True, False]) == 0.5
    assert auc([0.1, 0.4, 0.35, 0.8], [False, False, True, True]) == 0.75
    assert auc([math.inf, 0, -math.inf], [True, False, False]) == 1.0


def test_the_interval_covers_the_truth() -> None:
    """Normal scores, one deviation apart: the area is known, and 95% of intervals contain it."""
    truth = statistics.NormalDist().cdf(1 / math.sqrt(2))
    random = np.random.default_rng(1)
    labels = np.arange(150) < 60
    hits = 0
    for _ in range(400):
        estimate = auc_estimate(random.normal(size=150) + labels, labels)
        hits += estimate.low <= truth <= estimate.high
    assert hits / 400 == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1, 2], [True], r"lists of one length, got shapes \(2,\) and \(1,\)"),
        ([1, math.nan], [True, False], "scores must be numbers, got NaN at 1"),
        ([1, 2], [True, True], "labels of both kinds, got 2 True and 0 False"),
        ([], [], "labels of both kinds, got 0 True and 0 False"),
    ],
)
def test_what_has_no_area(scores: list[float], labels: list[bool], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        auc(scores, labels)


def test_what_has_no_interval() -> None:
    with pytest.raises(ValueError, match="of either label, got 1 of True and 2 of False"):
        auc_estimate([1, 2, 3], [True, False, False])
    with pytest.raises(ValueError, match="confidence must be above 0 and below 1, got 95"):
        auc_estimate([1, 2, 3, 4], [True, False, True, False], 95)

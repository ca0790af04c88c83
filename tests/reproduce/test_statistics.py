"""Means over seeds and their intervals, against published numbers and a slow computation."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relakit.analysis.estimate import Estimate
from relakit.reproduce.statistics import (
    T_QUANTILES,
    Difference,
    Seeds,
    difference,
    mean_interval,
    over_seeds,
)

NUMBERS = st.floats(-100, 100)
SAMPLES = st.lists(NUMBERS, min_size=2, max_size=6)


def student_density(t: float, freedom: int) -> float:
    factor = math.gamma((freedom + 1) / 2) / math.gamma(freedom / 2)
    return factor / math.sqrt(freedom * math.pi) * (1 + t * t / freedom) ** (-(freedom + 1) / 2)


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 20])
def test_quantiles_leave_two_and_a_half_percent_above_them(freedom: int) -> None:
    steps = np.linspace(0, T_QUANTILES[freedom - 1], 20_001)
    density = np.array([student_density(float(t), freedom) for t in steps])
    below = 0.5 + float(((density[1:] + density[:-1]) / 2 * np.diff(steps)).sum())
    assert below == pytest.approx(0.975, abs=2e-5)


def test_seeds() -> None:
    seeds = Seeds((30.0, 31.0, 32.0))
    assert (seeds.n, seeds.mean, seeds.deviation) == (3, 31.0, 1.0)
    assert seeds.text() == "31.0 ± 1.0"
    assert seeds.times(100).text(0) == "3100 ± 100"
    assert Seeds((30.25,)).deviation is None
    assert Seeds((30.25,)).text(2) == "30.25"


def test_welch_by_hand() -> None:
    # Variances 1 and 4 of three values each: the difference has the variance 1/3 + 4/3, and
    # (5/3)² / ((1/9 + 16/9) / 2) = 2.94 degrees of freedom, rounded down to 2: t = 4.303.
    found = difference([29.0, 30.0, 31.0], [26.0, 28.0, 30.0])
    assert found.value == pytest.approx(2.0)
    assert found.high - found.value == pytest.approx(4.303 * math.sqrt(5 / 3))
    assert found.value - found.low == pytest.approx(4.303 * math.sqrt(5 / 3))
    assert found.n == (3, 3)
    assert found.text() == "+2.0 (-3.6 to +7.6)"


@given(SAMPLES, SAMPLES)
def test_welch_against_numpy(first: list[float], second: list[float]) -> None:
    found = difference(first, second)
    one, other = (float(np.var(x, ddof=1)) / len(x) for x in (first, second))
    assert found.value == pytest.approx(float(np.mean(first) - np.mean(second)), abs=1e-9)
    half = (found.high - found.low) / 2
    if one + other < 1e-12:
        assert half == pytest.approx(0, abs=1e-4)
        return
    freedom = (one + other) ** 2 / (one**2 / (len(first) - 1) + other**2 / (len(second) - 1))
    # One step to each side: the two computations may round to different whole numbers.
    allowed = {T_QUANTILES[max(1, math.floor(freedom + e)) - 1] for e in (-1e-6, 0.0, 1e-6)}
    assert any(half == pytest.approx(t * math.sqrt(one + other), rel=1e-6) for t in allowed)


@given(SAMPLES, SAMPLES)
def test_welch_the_other_way_round(first: list[float], second: list[float]) -> None:
    there, back = difference(first, second), difference(second, first).negated()
    assert there.value == pytest.approx(back.value, abs=1e-9)
    assert there.low == pytest.approx(back.low, rel=1e-6, abs=1e-6)
    assert there.high == pytest.approx(back.high, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("first", "second"), [([1.0], [2.0]), ([1.0], [2.0, 3.0, 4.0])])
def test_a_single_seed_has_an_open_interval(first: list[float], second: list[float]) -> None:
    found = difference(first, second)
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert found.text() == f"{found.value:+.1f}"


def test_seeds_that_all_agree_have_no_width() -> None:
    found = difference([2.0, 2.0], [1.0, 1.0])
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)


@given(st.lists(NUMBERS, min_size=2, max_size=8))
def test_interval_of_a_mean(values: list[float]) -> None:
    found = mean_interval(values)
    error = statistics.stdev(values) / math.sqrt(len(values))
    assert found.value == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert found.high - found.value == pytest.approx(
        T_QUANTILES[len(values) - 2] * error, rel=1e-6, abs=1e-9
    )


def test_mean_of_one() -> None:
    assert mean_interval([0.3]).text(2) == "+0.30"


def test_many_degrees_of_freedom_have_the_widest_known_quantile() -> None:
    values = [float(n % 7) for n in range(100)]
    error = statistics.stdev(values) / 10
    found = mean_interval(values)
    assert found.high - found.value == pytest.approx(T_QUANTILES[-1] * error)
    assert T_QUANTILES[-1] * error > 1.984 * error  # the quantile of 99 degrees of freedom


def test_limits_of_one_of_several() -> None:
    found = Difference(1.0, 0.0, 2.0, (3, 3))
    assert found.for_one_of(1) == found
    # Standard deviations of the normal distribution at 0.05 / 2 / 6 and at 0.05 / 2.
    assert found.for_one_of(6).low == pytest.approx(1 - 2.6383 / 1.9600, abs=1e-4)


def test_intervals_of_all_seeds_together() -> None:
    seeds = [Estimate(value=0.6, low=0.5, high=0.9), Estimate(value=0.8, low=0.75, high=0.85)]
    found = over_seeds(seeds)
    assert found == Difference(pytest.approx(0.7), 0.5, 0.9, (2, 2))
    assert found.minus(0.5) == Difference(pytest.approx(0.2), 0.0, 0.4, (2, 2))

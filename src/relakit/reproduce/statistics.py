"""Means over seeds and the intervals of their differences. No torch here."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from relakit.analysis.estimate import Estimate

T_QUANTILES: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
)  # fmt: skip
"""0.975 quantiles of Student's t distribution, for 1 to 20 degrees of freedom."""


@dataclass(frozen=True)
class Seeds:
    """A number that was measured once for each seed."""

    values: tuple[float, ...]

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation; None for a single seed."""
        return statistics.stdev(self.values) if self.n > 1 else None

    def times(self, factor: float) -> "Seeds":
        return Seeds(tuple(factor * value for value in self.values))

    def text(self, digits: int = 1) -> str:
        """``33.1 ± 0.2``"""
        if self.deviation is None:
            return f"{self.mean:.{digits}f}"
        return f"{self.mean:.{digits}f} ± {self.deviation:.{digits}f}"


@dataclass(frozen=True)
class Difference:
    """A difference with its 95% interval, which is unbounded if there is only one value."""

    value: float
    low: float
    high: float
    n: tuple[int, int]

    def minus(self, number: float) -> "Difference":
        return Difference(self.value - number, self.low - number, self.high - number, self.n)

    def negated(self) -> "Difference":
        return Difference(-self.value, -self.high, -self.low, self.n)

    def times(self, factor: float) -> "Difference":
        """All numbers times a factor above 0."""
        return Difference(factor * self.value, factor * self.low, factor * self.high, self.n)

    def for_one_of(self, several: int) -> "Difference":
        """With limits wide enough that those of all ``several`` hold at 95% (Bonferroni)."""
        normal = statistics.NormalDist()
        factor = normal.inv_cdf(1 - 0.025 / several) / normal.inv_cdf(1 - 0.025)
        low, high = (self.value + factor * (end - self.value) for end in (self.low, self.high))
        return Difference(self.value, low, high, self.n)

    def text(self, digits: int = 1) -> str:
        """``-0.4 (-1.1 to +0.3)``"""
        interval = ""
        if math.isfinite(self.low):
            interval = f" ({self.low:+.{digits}f} to {self.high:+.{digits}f})"
        return f"{self.value:+.{digits}f}{interval}"


def mean_interval(values: Sequence[float]) -> Difference:
    """The mean of differences, with its interval by Student's t test."""
    mean, n = statistics.fmean(values), (len(values), len(values))
    if len(values) < 2:
        return Difference(mean, -math.inf, math.inf, n)
    half = _quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Difference(mean, mean - half, mean + half, n)


def over_seeds(estimates: Sequence[Estimate]) -> Difference:
    """The mean over seeds, with the lowest and the highest limit of any of them."""
    return Difference(
        statistics.fmean(one.value for one in estimates),
        min(one.low for one in estimates),
        max(one.high for one in estimates),
        (len(estimates), len(estimates)),
    )


def difference(first: Sequence[float], second: Sequence[float]) -> Difference:
    """The first mean minus the second; the interval is unbounded if either has a single value."""
    value = statistics.fmean(first) - statistics.fmean(second)
    n = (len(first), len(second))
    if min(n) < 2:
        return Difference(value, -math.inf, math.inf, n)
    parts = [statistics.variance(values) / len(values) for values in (first, second)]
    variance = sum(parts)
    if variance == 0:
        return Difference(value, value, value, n)
    # Computed from shares of the variance, as its square may be too small for a float.
    shares = [part / variance for part in parts]
    freedom = 1 / sum(share**2 / (count - 1) for share, count in zip(shares, n, strict=True))
    half = _quantile(freedom) * math.sqrt(variance)
    return Difference(value, value - half, value + half, n)


def _quantile(freedom: float) -> float:
    """The quantile for ``freedom`` rounded down, which makes intervals wider, not narrower."""
    return T_QUANTILES[min(max(int(freedom), 1), len(T_QUANTILES)) - 1]

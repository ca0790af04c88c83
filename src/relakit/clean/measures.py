"""What pairs are ranked by: a column of their scores, or a calibrated probability. No torch here.

Internally, all are *badness*: the higher, the worse. People see the original numbers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from relakit.clean.calibration import LOOKS, Judgement, NoiseCalibration
from relakit.clean.columns import COLUMNS, Column
from relakit.clean.score_table import Numbers, ScoreBlock

PROBABILITY: Final = "probability"
RANKED: Final[Mapping[str, Column]] = {c.name: c for c in COLUMNS if c.good is not None}
"""The columns that pairs can be ranked by."""


def column_badness(column: Column, numbers: Numbers, typical: float = 0.0) -> Numbers:
    """How bad pairs are by a column; ``typical`` is the usual logarithm of a ratio."""
    if column.good == "typical":
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.abs(np.log(numbers) - typical)
    return -numbers if column.good == "high" else numbers


class Measure(Protocol):
    """Ranks pairs."""

    @property
    def name(self) -> str:
        """The name of the column, or `PROBABILITY`."""

    def look(self, block: ScoreBlock) -> "Look":
        """Rank the pairs of a block."""

    def from_threshold(self, threshold: float) -> float:
        """The badness up to which pairs are kept; ValueError if the threshold is not valid."""

    def shown_numbers(self, badness: Numbers) -> Numbers:
        """Badness as the numbers that people see; for a ratio, its factor to the usual (>= 1)."""

    def shown(self, badness: float) -> float:
        """The same for one number."""

    def in_words(self, badness: float) -> str:
        """Which pairs are kept if those up to this badness are, in words."""


class Look(Protocol):
    """What a measure says about the pairs of a block."""

    @property
    def badness(self) -> Numbers:
        """The badness of each pair; NaN for pairs that cannot be ranked."""

    def value(self, place: int) -> float:
        """The number that people see."""

    def kind(self, place: int) -> str:
        """Why a pair is rejected, in one word to count by."""

    def reason(self, place: int, cut: float) -> str:
        """Why a pair is rejected, in words."""

    def shares(self, place: int) -> dict[str, float]:
        """How likely a pair is to be clean or each kind of noise; empty if that is not known."""


@dataclass(frozen=True)
class ColumnMeasure:
    """Ranks by one column."""

    name: str
    typical: float = 0.0
    """The usual logarithm, for a ratio"""

    @property
    def column(self) -> Column:
        return RANKED[self.name]

    @property
    def _is_ratio(self) -> bool:
        return self.column.good == "typical"

    def look(self, block: ScoreBlock) -> "_ColumnLook":
        numbers = block.numbers[self.name]
        return _ColumnLook(self, numbers, column_badness(self.column, numbers, self.typical))

    def from_threshold(self, threshold: float) -> float:
        if not self._is_ratio:
            return -threshold if self.column.good == "high" else threshold
        if threshold < 1:
            raise ValueError(
                f"--threshold {threshold:g} is how many times longer or shorter than usual a "
                f"{self.name} may be, so it must be at least 1"
            )
        return math.log(threshold)

    def shown_numbers(self, badness: Numbers) -> Numbers:
        if self._is_ratio:
            return np.asarray(np.exp(badness))
        return -badness if self.column.good == "high" else badness

    def shown(self, badness: float) -> float:
        return float(self.shown_numbers(np.array([badness]))[0])

    def in_words(self, badness: float) -> str:
        value = f"{self.shown(badness):.4g}"
        if self._is_ratio:
            return (
                f"{self.name} at most {value} times the usual {math.exp(self.typical):.3g}, or less"
            )
        return f"{self.name} {'>=' if self.column.good == 'high' else '<='} {value}"

    def reason_for(self, number: float, badness: float, cut: float) -> str:
        value, limit = f"{number:.4g}", f"{self.shown(cut):.4g}"
        if badness == cut:
            return f"{self.name} {value} is the cut; lines before it were kept"
        if self._is_ratio:
            times = f"{math.exp(badness):.3g} times"
            usual = f"{math.exp(self.typical):.3g}"
            more = "more" if math.log(number) > self.typical else "less"
            return f"{self.name} {value} is {times} {more} than the usual {usual}, > {limit}"
        return f"{self.name} {value} {'<' if self.column.good == 'high' else '>'} {limit}"


@dataclass(frozen=True)
class _ColumnLook:
    measure: ColumnMeasure
    numbers: Numbers
    badness: Numbers

    def value(self, place: int) -> float:
        return float(self.numbers[place])

    def kind(self, place: int) -> str:
        return self.measure.name

    def reason(self, place: int, cut: float) -> str:
        return self.measure.reason_for(self.value(place), float(self.badness[place]), cut)

    def shares(self, place: int) -> dict[str, float]:
        return {}


@dataclass(frozen=True)
class ProbabilityMeasure:
    """Ranks by the probability that a calibration gives."""

    calibration: NoiseCalibration
    name: str = PROBABILITY

    def look(self, block: ScoreBlock) -> "_ProbabilityLook":
        return _ProbabilityLook(self.calibration.judge(block.numbers))

    def from_threshold(self, threshold: float) -> float:
        if not 0 < threshold < 1:
            raise ValueError(
                f"--threshold {threshold:g} is a probability here, above 0 and below 1"
            )
        return math.log((1 - threshold) / threshold)

    def shown_numbers(self, badness: Numbers) -> Numbers:
        return np.asarray(0.5 * (1 - np.tanh(badness / 2)))

    def shown(self, badness: float) -> float:
        return float(self.shown_numbers(np.array([badness]))[0])

    def in_words(self, badness: float) -> str:
        return f"{self.name} >= {self.shown(badness):.4g}"


@dataclass(frozen=True)
class _ProbabilityLook:
    judgement: Judgement

    @property
    def badness(self) -> Numbers:
        return self.judgement.noise_log_odds

    def value(self, place: int) -> float:
        return float(self.judgement.probability[place])

    def kind(self, place: int) -> str:
        return self.judgement.kind(place)

    def reason(self, place: int, cut: float) -> str:
        looks = LOOKS[self.judgement.kind(place)]
        return ": ".join([looks, "; ".join(self.judgement.reasons(place))]).removesuffix(": ")

    def shares(self, place: int) -> dict[str, float]:
        return self.judgement.shares(place)

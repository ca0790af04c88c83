"""A number that was measured on a sample, with its confidence interval. No torch here."""

from dataclasses import dataclass
from typing import Final

CONFIDENCE: Final = 0.95
"""Level of confidence intervals, by default."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What was measured, and the confidence interval of what it stands for."""

    value: float
    low: float
    high: float


def check_confidence(confidence: float) -> None:
    """Raise ValueError for a level that no interval has."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, got {confidence}")

"""A number measured on a sample, with its confidence interval. No torch here."""

from dataclasses import dataclass
from typing import Final

CONFIDENCE: Final = 0.95
"""Default level of confidence intervals."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A measured value, and the confidence interval of the quantity that it estimates."""

    value: float
    low: float
    high: float


def check_confidence(confidence: float) -> None:
    """Raise ValueError for an impossible confidence level."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, got {confidence}")

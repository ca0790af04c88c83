"""Defaults of `relakit filter`; light enough for help texts."""

from typing import Final

CALIBRATION_PAIRS: Final = 2000
CALIBRATION_SEED: Final = 1
EXPECTED_NOISE: Final = 0.5
"""Share of pairs that are taken for noise before any is looked at."""
THRESHOLD: Final = 0.5
"""The lowest probability of being clean with which a pair is kept."""

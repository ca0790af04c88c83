"""Defaults of `relakit filter`; light enough to import for help texts."""

from typing import Final

CALIBRATION_PAIRS: Final = 2000
CALIBRATION_SEED: Final = 1
EXPECTED_NOISE: Final = 0.5
"""Share of pairs that are assumed to be noise before any is looked at."""
THRESHOLD: Final = 0.5
"""The lowest probability of being clean at which a pair is kept."""

"""Defaults that help texts name; light."""

from typing import Final

BATCH_TOKENS: Final = 4096
"""Padded tokens of the longer side that are computed at once, by default."""
BOOTSTRAP_SEED: Final = 1
"""Of the draws of pairs for confidence intervals, by default."""

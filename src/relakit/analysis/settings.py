"""Defaults that help texts mention; quick to import."""

from typing import Final

BATCH_TOKENS: Final = 4096
"""How many padded tokens of the longer side are computed at once, by default."""
BOOTSTRAP_SEED: Final = 1
"""Default seed for drawing the pairs that confidence intervals come from."""
EXPLORED: Final = 200
"""How many sentences' attention is kept for inspection, by default."""
PAIR_WEIGHTS: Final = 1 << 26
"""The most attention weights of one pair that are recorded at once (256 MiB)."""
SHUFFLE_SEED: Final = 1
"""Default seed of the permutation that gives each target another pair's source."""
TEMPERATURES: Final = (1.0, 0.5, 0.25, 0.1)
"""The temperatures of Table 6."""

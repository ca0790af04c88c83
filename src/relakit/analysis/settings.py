"""Defaults that help texts name; light."""

from typing import Final

BATCH_TOKENS: Final = 4096
"""Padded tokens of the longer side that are computed at once, by default."""
BOOTSTRAP_SEED: Final = 1
"""Of the draws of pairs for confidence intervals, by default."""
EXPLORED: Final = 200
"""Sentences whose attention is kept to look at, by default."""
PAIR_WEIGHTS: Final = 1 << 26
"""Most attention weights of one pair that are recorded at once (256 MiB)."""
SHUFFLE_SEED: Final = 1
"""Of the permutation that gives each target another pair's source, by default."""
TEMPERATURES: Final = (1.0, 0.5, 0.25, 0.1)
"""Of Table 6."""

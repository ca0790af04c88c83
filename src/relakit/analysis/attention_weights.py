"""What can be told of attention weights without a model: what they sum to, and nulls. No torch."""

from typing import Final

import numpy as np
import numpy.typing as npt

SUM_TO_ONE: Final = frozenset({"softmax", "sparsemax", "entmax15"})
"""Attention, and activations, whose weights are a distribution over keys as they are."""


def null_query_share(weights: npt.NDArray[np.floating]) -> float:
    """Share of queries that attend to nothing, of ``[..., queries, keys]``; 0 of no queries."""
    null: npt.NDArray[np.bool_] = ~(weights != 0).any(-1)
    return float(null.sum()) / max(1, null.size)

"""What attention weights tell without a model: what they sum to, and null queries. No torch."""

from typing import Final

import numpy as np
import numpy.typing as npt

SUM_TO_ONE: Final = frozenset({"softmax", "sparsemax", "entmax15"})
"""Attentions and activations whose weights already are a distribution over keys."""


def null_query_share(weights: npt.NDArray[np.floating]) -> float:
    """Share of queries in ``[..., queries, keys]`` that attend to nothing; 0 without queries."""
    null: npt.NDArray[np.bool_] = ~(weights != 0).any(-1)
    return float(null.sum()) / max(1, null.size)

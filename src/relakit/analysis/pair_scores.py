"""Scores that may tell good sentence pairs from bad ones. No torch here."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from relakit.attention_kinds import AttentionKind

SCORED_KINDS: Final[tuple[AttentionKind, ...]] = ("cross",)
"""The attention that scores are computed from"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairScores:
    """What a model says about each sentence pair, in the order of the pairs."""

    null_queries: npt.NDArray[np.int32]
    """``[pairs, layers, heads]``: queries whose cross-attention weights are all 0"""
    queries: npt.NDArray[np.int64]
    """``[pairs]``: the target's tokens and the begin token"""
    cross_entropy: npt.NDArray[np.float64]
    """``[pairs]``: nats per target token, including the end of the sentence unless the target is
    cropped"""
    mass: npt.NDArray[np.float64] | None
    """``[pairs, layers]``: a query's total cross-attention weight, averaged over heads and queries;
    None if weights always sum to 1"""

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def null_rate(self) -> npt.NDArray[np.float64]:
        """``[pairs, layers, heads]``: share of queries that attend to nothing."""
        return self.null_queries / self.queries[:, None, None]

    @property
    def layer_null_rate(self) -> npt.NDArray[np.float64]:
        """``[pairs, layers]``: the mean over heads."""
        # Add counts before dividing, so that equal rates stay equal.
        null: npt.NDArray[np.int64] = self.null_queries.sum(2)
        rate: npt.NDArray[np.float64] = null / (self.null_queries.shape[2] * self.queries[:, None])
        return rate

    @property
    def mean_null_rate(self) -> npt.NDArray[np.float64]:
        """``[pairs]``: the mean over layers and heads."""
        _, layers, heads = self.null_queries.shape
        null: npt.NDArray[np.int64] = self.null_queries.sum((1, 2))
        rate: npt.NDArray[np.float64] = null / (layers * heads * self.queries)
        return rate

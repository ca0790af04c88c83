"""How much of the attention is exactly zero: sparsity and null rates."""

from collections.abc import Sequence

import torch
from torch import Tensor

from relakit.analysis.rates import Share, by_head


def sparsity_rate(weights: Tensor, valid: Tensor | None = None) -> Tensor:
    """Fraction of unmasked weights that are exactly 0, per head.

    Args:
        weights: ``[..., heads, queries, keys]``.
        valid: True where a key was not masked; broadcasts to the weights. None: no masking.

    Returns:
        ``[heads]``; NaN for a head without a valid key.
    """
    return zero_share(weights, valid).rate()


def zero_share(weights: Tensor, valid: Tensor | None = None) -> Share:
    """`sparsity_rate` as a ratio: zero weights, and all weights."""
    weights, valid = by_head(weights, valid)
    zeros = ((weights == 0) & valid).sum((0, 2, 3))
    return Share(zeros, valid.sum((0, 2, 3)).expand_as(zeros))


def null_rate(weights: Tensor, valid: Tensor | None = None) -> Tensor:
    """Fraction of queries that attend to nothing: all their weights are 0. Per head.

    Queries without a valid key do not count: they have nothing to attend to.

    Args:
        weights: ``[..., heads, queries, keys]``.
        valid: True where a key was not masked; broadcasts to the weights. To leave out queries
            (padding), set it to False for all their keys. None: no masking.

    Returns:
        ``[heads]``; NaN for a head without a query that counts.
    """
    return null_share(weights, valid).rate()


def null_share(weights: Tensor, valid: Tensor | None = None) -> Share:
    """`null_rate` as a ratio: null queries, and all queries."""
    weights, valid = by_head(weights, valid)
    null = null_queries(weights, valid).sum((0, 2))
    return Share(null, valid.any(-1).sum((0, 2)).expand_as(null))


def layer_null_rate(weights: Tensor, valid: Tensor | None = None) -> Tensor:
    """Fraction of queries that attend to nothing in any head.

    The arguments are as in `null_rate`. A query counts if it has a valid key in any head.

    Returns:
        A scalar; NaN if no query counts.
    """
    return layer_null_share(weights, valid).rate()


def layer_null_share(weights: Tensor, valid: Tensor | None = None) -> Share:
    """`layer_null_rate` as a ratio: null queries, and all queries."""
    weights, valid = by_head(weights, valid)
    counted = valid.any(-1).any(1)  # [batch, queries]
    attends = ((weights != 0) & valid).any(-1).any(1)
    return Share((counted & ~attends).sum(), counted.sum())


def null_queries(weights: Tensor, valid: Tensor) -> Tensor:
    """Which queries have valid keys, and weight 0 on all of them: ``[..., heads, queries]``.

    Both arguments have the shape ``[..., heads, queries, keys]``, or broadcast to it.
    """
    return valid.any(-1) & ~((weights != 0) & valid).any(-1)


def null_counts(layers: Sequence[Tensor], valid: Tensor) -> Tensor:
    """How many queries of each sentence are null: ``[sentences, layers, heads]``.

    Args:
        layers: weights ``[sentences, heads, queries, keys]`` of each layer.
        valid: broadcasts to the weights of each layer.
    """
    return torch.stack([null_queries(weights, valid).sum(-1) for weights in layers], dim=1)

"""How much of the attention is exactly zero."""

import torch
from torch import Tensor


def sparsity_rate(weights: Tensor, valid: Tensor | None = None) -> Tensor:
    """Fraction of weights that are exactly 0, per head, among those that were not masked.

    Args:
        weights: ``[batch, heads, queries, keys]``.
        valid: True where a key was not masked; broadcasts to the weights. None: nowhere masked.

    Returns:
        ``[heads]``; NaN for a head without a valid key.
    """
    valid = _valid_or_all(weights, valid)
    zeros = ((weights == 0) & valid).sum((0, 2, 3))
    return zeros / valid.sum((0, 2, 3))


def null_rate(weights: Tensor, valid: Tensor | None = None) -> Tensor:
    """Fraction of queries that attend to nothing: all their weights are 0. Per head.

    Queries without a valid key have nothing to attend to and do not count.

    Args:
        weights: ``[batch, heads, queries, keys]``.
        valid: True where a key was not masked; broadcasts to the weights. To leave out queries
            (padding), set it to False for all their keys. None: nowhere masked.

    Returns:
        ``[heads]``; NaN for a head without a query that counts.
    """
    valid = _valid_or_all(weights, valid)
    counted = valid.any(-1)  # [batch, heads, queries]
    null = counted & ~((weights != 0) & valid).any(-1)
    return null.sum((0, 2)) / counted.sum((0, 2))


def _valid_or_all(weights: Tensor, valid: Tensor | None) -> Tensor:
    if weights.dim() != 4:
        raise ValueError(
            "weights must have 4 dimensions [batch, heads, queries, keys], "
            f"got shape {tuple(weights.shape)}"
        )
    if valid is None:
        return torch.ones_like(weights, dtype=torch.bool)
    return valid.expand_as(weights)

"""How much of the attention is exactly zero."""

import torch
from torch import Tensor


def sparsity_rate(weights: Tensor, valid: Tensor | None = None) -> Tensor:
    """Fraction of weights that are exactly 0, per head, among those that were not masked.

    Args:
        weights: ``[..., heads, queries, keys]``.
        valid: True where a key was not masked; broadcasts to the weights. None: nowhere masked.

    Returns:
        ``[heads]``; NaN for a head without a valid key.
    """
    weights, valid = _by_head(weights, valid)
    zeros = ((weights == 0) & valid).sum((0, 2, 3))
    return zeros / valid.sum((0, 2, 3))


def null_rate(weights: Tensor, valid: Tensor | None = None) -> Tensor:
    """Fraction of queries that attend to nothing: all their weights are 0. Per head.

    Queries without a valid key have nothing to attend to and do not count.

    Args:
        weights: ``[..., heads, queries, keys]``.
        valid: True where a key was not masked; broadcasts to the weights. To leave out queries
            (padding), set it to False for all their keys. None: nowhere masked.

    Returns:
        ``[heads]``; NaN for a head without a query that counts.
    """
    weights, valid = _by_head(weights, valid)
    counted = valid.any(-1)  # [batch, heads, queries]
    null = counted & ~((weights != 0) & valid).any(-1)
    return null.sum((0, 2)) / counted.sum((0, 2))


def _by_head(weights: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
    """Both as ``[batch, heads, queries, keys]``."""
    if weights.dim() < 3:
        raise ValueError(
            "weights must have at least 3 dimensions [..., heads, queries, keys], "
            f"got shape {tuple(weights.shape)}"
        )
    if valid is None:
        valid = torch.ones_like(weights, dtype=torch.bool)
    shape = (-1, *weights.shape[-3:])
    return weights.reshape(shape), valid.expand_as(weights).reshape(shape)

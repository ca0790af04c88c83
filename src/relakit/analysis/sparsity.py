"""How much of the attention is exactly zero."""

import torch
from relakit.analysis.shares import Share
from torch import Tensor


def sparsity_rate(weights: Tensor, valid: Tensor | None = None) -> Tensor:
    """Fraction of weights that are exactly 0, per head, among those that were not masked.

    Args:
        weights: ``[..., heads, queries, keys]``.
        valid: True where a key was not masked; broadcasts to the weights. None: nowhere masked.

    Returns:
        ``[heads]``; NaN for a head without a valid key.
    """
    return zero_share(weights, valid).rate()


def zero_share(weights: Tensor, valid: Tensor | None = None) -> Share:
    """`sparsity_rate` as zero weights and all weights."""
    weights, valid = by_head(weights, valid)
    zeros = ((weights == 0) & valid).sum((0, 2, 3))
    return Share(zeros, valid.sum((0, 2, 3)).expand_as(zeros))


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
    return null_share(weights, valid).rate()


def null_share(weights: Tensor, valid: Tensor | None = None) -> Share:
    """`null_rate` as null queries and all queries."""
    weights, valid = by_head(weights, valid)
    null = null_queries(weights, valid).sum((0, 2))
    return Share(null, valid.any(-1).sum((0, 2)).expand_as(null))


def layer_null_rate(weights: Tensor, valid: Tensor | None = None) -> Tensor:
    """Fraction of queries that attend to nothing in any head.

    Arguments as in `null_rate`. A query counts if it has a valid key in some head.

    Returns:
        A scalar; NaN if no query counts.
    """
    return layer_null_share(weights, valid).rate()


def layer_null_share(weights: Tensor, valid: Tensor | None = None) -> Share:
    """`layer_null_rate` as null queries and all queries."""
    weights, valid = by_head(weights, valid)
    counted = valid.any(-1).any(1)  # [batch, queries]
    attends = ((weights != 0) & valid).any(-1).any(1)
    return Share((counted & ~attends).sum(), counted.sum())


def null_queries(weights: Tensor, valid: Tensor) -> Tensor:
    """Which queries have valid keys, and weight 0 on all of them: ``[..., heads, queries]``.

    Both arguments have the shape ``[..., heads, queries, keys]``, or broadcast to it.
    """
    return valid.any(-1) & ~((weights != 0) & valid).any(-1)


def by_head(weights: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
    """Weights as ``[batch, heads, queries, keys]``; valid, too, or with one head for all."""
    if weights.dim() < 3:
        raise ValueError(
            "weights must have at least 3 dimensions [..., heads, queries, keys], "
            f"got shape {tuple(weights.shape)}"
        )
    if valid is None:
        valid = torch.ones(1, 1, 1, dtype=torch.bool, device=weights.device)
    *lead, _, queries, keys = weights.shape
    valid_heads = valid.size(-3) if valid.dim() > 2 else 1  # most masks are the same for all heads
    valid = valid.expand(*lead, valid_heads, queries, keys)
    return weights.reshape(-1, *weights.shape[-3:]), valid.reshape(-1, *valid.shape[-3:])

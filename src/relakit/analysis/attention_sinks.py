"""How much attention lies on tokens that say little: the first one, and the end of the sentence."""

import torch
from torch import Tensor

from relakit.analysis.rates import Share, by_head


def first_sink_rate(weights: Tensor, valid: Tensor | None = None) -> Tensor:
    """Share of the attention weight that lies on the first key, per head.

    Only queries with other valid keys count. Negative weights count by their absolute value.

    Args:
        weights: ``[..., heads, queries, keys]``.
        valid: True where a key was not masked; broadcasts to the weights. None: no masking.

    Returns:
        ``[heads]``; NaN for a head without weight.
    """
    return first_key_share(weights, valid).rate()


def first_key_share(weights: Tensor, valid: Tensor | None = None) -> Share:
    """`first_sink_rate` as a ratio: weight on the first key, and all weight."""
    weights, valid = by_head(weights, valid)
    counted = valid[..., 1:].any(-1, keepdim=True)  # [batch, heads, queries, 1]
    amounts = weights.abs() * (valid & counted)
    return Share(_total(amounts[..., :1]), _total(amounts))


def end_sink_rate(weights: Tensor, key_sizes: Tensor, valid: Tensor | None = None) -> Tensor:
    """Share of the attention weight that lies on the last key of a sentence, per head.

    Negative weights count by their absolute value.

    Args:
        weights: ``[batch, heads, queries, keys]``.
        key_sizes: how many keys each sentence has, ``[batch]``; the rest is padding.
        valid: as in `first_sink_rate`.

    Returns:
        ``[heads]``; NaN for a head without weight.
    """
    return end_key_share(weights, key_sizes, valid).rate()


def end_key_share(weights: Tensor, key_sizes: Tensor, valid: Tensor | None = None) -> Share:
    """`end_sink_rate` as a ratio: weight on the last keys, and all weight."""
    weights, valid = by_head(weights, valid)
    amounts = weights.abs() * valid
    last = (key_sizes - 1)[:, None, None, None].expand(*amounts.shape[:-1], 1)
    return Share(_total(amounts.gather(-1, last)), _total(amounts))


def _total(amounts: Tensor) -> Tensor:
    return amounts.sum(-1).sum((0, 2), dtype=torch.float64)

"""Masks: from `nn.MultiheadAttention`'s convention to SDPA's, here and nowhere else.

In a boolean mask of `nn.MultiheadAttention` True means "do not attend"; for SDPA and
`relakit.attention` it means "attend". Floating-point masks are added to the scores in both.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def merge_masks(
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    *,
    batch: int,
    heads: int,
    dtype: torch.dtype,
    extra_keys: int = 0,
) -> Tensor | None:
    """The two masks of `nn.MultiheadAttention` as one mask for SDPA.

    Args:
        attn_mask: ``[queries, keys]`` or ``[batch * heads, queries, keys]``.
        key_padding_mask: ``[batch, keys]``.
        batch: number of sequences.
        heads: number of attention heads.
        dtype: the query's dtype.
        extra_keys: keys appended to the sequence, which every query sees.

    Returns:
        A mask that broadcasts to ``[batch, heads, queries, keys + extra_keys]``; None for no mask.
        It is boolean if both masks are; otherwise float32, or float64 for a float64 query.
    """
    parts = []
    if attn_mask is not None:
        is_per_head = attn_mask.dim() == 3
        parts.append(
            attn_mask.reshape(batch, heads, *attn_mask.shape[1:]) if is_per_head else attn_mask
        )
    if key_padding_mask is not None:
        parts.append(key_padding_mask[:, None, None, :])
    if not parts:
        return None
    if all(part.dtype == torch.bool for part in parts):
        merged = parts[0] if len(parts) == 1 else parts[0] | parts[1]
        return F.pad(~merged, (0, extra_keys), value=True)
    # Not in half precision: the scores of half-precision queries are float32.
    bias_dtype = torch.float64 if dtype == torch.float64 else torch.float32
    biases = [_as_bias(part, bias_dtype) for part in parts]
    merged = biases[0] if len(biases) == 1 else biases[0] + biases[1]
    return F.pad(merged, (0, extra_keys), value=0.0)


def hidden_too(mask: Tensor | None, hidden: Tensor) -> Tensor:
    """The mask, as `nn.MultiheadAttention` takes it, also hiding what ``hidden`` marks."""
    if mask is None:
        return hidden
    return mask | hidden if mask.dtype == torch.bool else mask.masked_fill(hidden, -math.inf)


def _as_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype == torch.bool:
        zeros = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
        return zeros.masked_fill(mask, -math.inf)
    return mask.to(dtype)

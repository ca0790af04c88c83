"""The reference: attention in plain PyTorch, written to be read and never optimised.

It is the ground truth for every other backend.
"""

import math
from collections.abc import Mapping
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from relakit.ops.activations import ACTIVATIONS, ScoreOptions, Weigh
from relakit.ops.call import AttentionCall
from relakit.ops.options import ActivationName
from relakit.ops.precision import wide, without_autocast

Activations: TypeAlias = Mapping[ActivationName, Weigh]


def reference_attention(
    call: AttentionCall, activations: Activations = ACTIVATIONS
) -> tuple[Tensor, Tensor]:
    """Output ``[..., heads, queries, value dim]`` and weights ``[..., heads, queries, keys]``.

    The weights are the ones that the values were multiplied with, so after dropout, as in
    PyTorch's modules. For half-precision input the weights are float32; the output is not.
    """
    weights, _ = reference_weights(call, activations)
    with without_autocast(call.query):
        weights = F.dropout(weights, call.dropout_p)
        value = wide(call.value)
        if call.enable_gqa:
            value = _repeat_heads(value, call.query)
        output = weights @ value  # [..., heads, queries, value dim]
    return output.to(call.query.dtype), weights


def reference_weights(
    call: AttentionCall, activations: Activations = ACTIVATIONS
) -> tuple[Tensor, Tensor | None]:
    """Weights without dropout, and a tensor of which keys were valid (None: all of them).

    Both have the shape ``[..., heads, queries, keys]``; the second may be a broadcast view. For
    half-precision input the weights are float32.
    """
    with without_autocast(call.query):
        key = wide(call.key)
        if call.enable_gqa:
            key = _repeat_heads(key, call.query)
        # Scaled before the product, as in the authors' code.
        scores = (wide(call.query) * call.score_scale) @ key.mT  # [..., heads, queries, keys]
        bias, valid = _bias_and_valid(call)
        if bias is not None:
            scores = scores + bias.to(scores.dtype)
        options = ScoreOptions(
            threshold=_threshold_per_head(call.threshold, scores),
            power=call.power,
            length_exponent=call.length_exponent,
        )
        weights = activations[call.activation](scores, valid, options)
    return weights, None if valid is None else valid.expand_as(weights)


def _bias_and_valid(call: AttentionCall) -> tuple[Tensor | None, Tensor | None]:
    """What to add to the scores, and which keys a query may see: SDPA's mask in two parts."""
    mask, visible = call.attn_mask, call.visible_by_place()
    if mask is None:
        return None, visible
    bias, valid = (None, mask) if mask.dtype == torch.bool else (mask, mask != -math.inf)
    return bias, valid if visible is None else valid & visible


def _threshold_per_head(threshold: float | Tensor, scores: Tensor) -> float | Tensor:
    if not isinstance(threshold, Tensor):
        return threshold
    threshold = threshold.to(scores.dtype)
    return threshold if threshold.dim() == 0 else threshold[:, None, None]


def _repeat_heads(tensor: Tensor, query: Tensor) -> Tensor:
    """Grouped-query attention: neighbouring query heads share one key or value head."""
    return tensor.repeat_interleave(query.size(-3) // tensor.size(-3), dim=-3)

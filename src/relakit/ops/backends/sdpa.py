"""The backend for softmax: PyTorch's fused attention."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from relakit.ops.backends.base import Backend
from relakit.ops.call import AttentionCall, AttentionResult


class SdpaBackend(Backend):
    name = "sdpa"
    description = "PyTorch's scaled_dot_product_attention; softmax without weights"
    activations = ("softmax",)

    def refusals(self, call: AttentionCall) -> list[str]:
        if call.need_weights or call.need_statistics:
            return ["it does not return weights or what depends on them"]
        return []

    def run(self, call: AttentionCall) -> AttentionResult:
        mask = _mask_with_reach(call)
        if mask is not None and mask.is_floating_point() and call.query.dtype == torch.float64:
            # PyTorch's CPU kernels accept a float32 mask here, but compute something else.
            mask = mask.double()
        output = F.scaled_dot_product_attention(
            call.query,
            call.key,
            call.value,
            # SDPA rejects a one-dimensional mask, although it would broadcast.
            attn_mask=mask[None] if mask is not None and mask.dim() == 1 else mask,
            dropout_p=call.dropout_p,
            is_causal=call.is_causal,
            scale=call.scale,
            enable_gqa=call.enable_gqa,
        )
        return AttentionResult(output)


def _mask_with_reach(call: AttentionCall) -> Tensor | None:
    mask = call.attn_mask
    if call.reach is None:
        return mask
    visible = call.visible_by_place()
    if mask is None or visible is None:
        return visible
    return mask & visible if mask.dtype == torch.bool else mask.masked_fill(~visible, -math.inf)

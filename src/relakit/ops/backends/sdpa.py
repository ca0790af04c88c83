"""The backend for softmax: PyTorch's fused attention."""

import torch.nn.functional as F

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
        mask = call.attn_mask
        output = F.scaled_dot_product_attention(
            call.query,
            call.key,
            call.value,
            # SDPA does not take a mask of one dimension, though it would broadcast.
            attn_mask=mask[None] if mask is not None and mask.dim() == 1 else mask,
            dropout_p=call.dropout_p,
            is_causal=call.is_causal,
            scale=call.scale,
            enable_gqa=call.enable_gqa,
        )
        return AttentionResult(output)

"""The autograd side of RMSNorm in C++, gated or not.

The extension computes a call, then records it here. The input is ``[..., features]`` with
``feature_dims`` 1; or ``[..., heads, head features]``, normalised over all heads together, with
``feature_dims`` 2.
"""

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from relakit.ops.native.extension import load_extension
from relakit.ops.precision import wide
from relakit.ops.torch_private import recorder_of


class Norm(torch.autograd.Function):
    """Records what the extension has computed. Only the extension calls it."""

    @staticmethod
    def forward(
        ctx: Any,
        computed: tuple[Tensor, Tensor],
        options: tuple[float, int],
        x: Tensor,
        gain: Tensor,
        gate: Tensor | None,
    ) -> Tensor:
        output, inverse_rms = computed
        ctx.save_for_backward(x, gain, gate, inverse_rms)
        ctx.options = options
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, gate, inverse_rms = ctx.saved_tensors
        gradients: tuple[Tensor | None, ...] | None = None
        if not is_dynamo_compiling():
            gradients = load_extension().norm_backward(
                grad_output, x, gain, gate, inverse_rms, *ctx.options
            )
        if gradients is None:
            gradients = norm_gradients(grad_output, x, gain, gate, *ctx.options)
        return None, None, *gradients


record_norm: Any = recorder_of(Norm)


def norm_gradients(
    grad_output: Tensor,
    x: Tensor,
    gain: Tensor,
    gate: Tensor | None,
    eps: float,
    feature_dims: int,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients of x, gain and gate in plain PyTorch, which can differentiate them again."""
    flat = wide(x.flatten(-2) if feature_dims == 2 else x)
    scale = torch.rsqrt(flat.square().mean(-1, keepdim=True) + eps)
    normalised = flat * scale
    grad_gated = wide(grad_output)
    grad_gate, grad_flat = None, torch.zeros_like(flat)
    if gate is not None:
        share = torch.sigmoid(flat * gate)
        grad_gated = grad_gated * share
        slope = grad_gated * gain * normalised * (1 - share)
        grad_gate = (slope * flat).sum_to_size(gate.shape).to(gate.dtype)
        grad_flat = slope * gate
    grad_gain = (grad_gated * normalised).sum_to_size(gain.shape).to(gain.dtype)
    grad_normalised = grad_gated * gain
    mean = (grad_normalised * normalised).mean(-1, keepdim=True)
    grad_flat = grad_flat + scale * (grad_normalised - normalised * mean)
    return grad_flat.reshape(x.shape).to(x.dtype), grad_gain, grad_gate

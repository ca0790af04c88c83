"""The C++ kernels for RMSNorm, gated or not, on the CPU.

`fused_rms_norm` runs them in one pass over memory, forward and backward, and with heads apart needs
no transposed copy of the output of attention. They are PyTorch operators too:
``relakit::gated_rms_norm`` and ``relakit::gated_rms_norm_backward``.

Shapes: the input is ``[..., features]``, or ``[..., heads, head features]`` where the features are
those of all heads (``feature_dims`` is 1 or 2). Half precision is computed in float32.
"""

import os
from typing import Any

import torch
from relakit.ops.native.eager import is_plain_eager
from relakit.ops.native.extension import BACKEND_VARIABLE, DTYPES, choose_isa
from relakit.ops.native.norm_kernels import (
    NormCall,
    check_gradient,
    has_contiguous_features,
    new_inverse_rms,
    new_like,
    new_output,
    new_parameter,
    run_backward,
    run_forward,
)
from relakit.ops.precision import wide
from torch import Tensor


def eager_kernels(x: Tensor, gain: Tensor, gate: Tensor | None) -> str | None:
    """The kernels to call `fused_rms_norm` with, or None where the plain formula is to be used.

    That is the case for other devices and dtypes, features that are not contiguous, without the
    extension, with RELAKIT_BACKEND=reference, and wherever PyTorch does not simply run operations:
    a compiler fuses the formula itself, transforms and tensor subclasses need to look into it.
    """
    if (
        not is_plain_eager(x, gain, gate)
        or x.dtype not in DTYPES
        or gain.dtype not in DTYPES
        or (gate is not None and gate.dtype not in DTYPES)
        or not has_contiguous_features(x)
        or os.environ.get(BACKEND_VARIABLE) == "reference"
    ):
        return None
    try:
        return choose_isa()
    except (ImportError, ValueError):  # `relakit doctor` says which
        return None


def fused_rms_norm(
    x: Tensor,
    gain: Tensor,
    gate: Tensor | None,
    *,
    eps: float,
    feature_dims: int = 1,
    kernels: str,
) -> Tensor:
    """``x / RMS(x) * gain``, times ``sigmoid(gate * x)`` if there is a gate: ``[..., features]``.

    ``kernels`` is what `eager_kernels` answered for the same tensors.
    """
    call = NormCall(x, gain, gate, eps, feature_dims)
    if torch.is_grad_enabled() and (
        x.requires_grad or gain.requires_grad or (gate is not None and gate.requires_grad)
    ):
        output: Tensor = _EagerNorm.apply(*call, kernels)  # type: ignore[no-untyped-call]
        return output
    return run_forward(call, kernels, needs_inverse_rms=False)[0]


class _EagerNorm(torch.autograd.Function):
    """The kernels without the operators around them."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        gain: Tensor,
        gate: Tensor | None,
        eps: float,
        feature_dims: int,
        kernels: str,
    ) -> Tensor:
        call = NormCall(x, gain, gate, eps, feature_dims)
        output, inverse_rms = run_forward(call, kernels, needs_inverse_rms=True)
        ctx.save_for_backward(x, gain, gate, inverse_rms)
        ctx.options = (eps, feature_dims)
        ctx.kernels = kernels
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, gate, inverse_rms = ctx.saved_tensors
        call = NormCall(x, gain, gate, *ctx.options)
        # With create_graph=True these gradients are differentiated again.
        if torch.is_grad_enabled() or not is_plain_eager(grad_output, x, gain, gate):
            return *plain_backward(grad_output, *call), None, None, None
        return *run_backward(grad_output, call, ctx.kernels, inverse_rms), None, None, None


@torch.library.custom_op("relakit::gated_rms_norm", mutates_args=(), device_types="cpu")
def gated_rms_norm(
    x: Tensor, gain: Tensor, gate: Tensor | None, eps: float, feature_dims: int
) -> tuple[Tensor, Tensor]:
    """The output and, for the backward pass, 1 / RMS of each row. Only the first has gradients."""
    call = NormCall(x, gain, gate, eps, feature_dims)
    return run_forward(call, choose_isa(), needs_inverse_rms=True)


@gated_rms_norm.register_fake
def _(
    x: Tensor, gain: Tensor, gate: Tensor | None, eps: float, feature_dims: int
) -> tuple[Tensor, Tensor]:
    return new_output(x, feature_dims), new_inverse_rms(x, feature_dims)


@torch.library.custom_op("relakit::gated_rms_norm_backward", mutates_args=(), device_types="cpu")
def gated_rms_norm_backward(
    grad_output: Tensor,
    inverse_rms: Tensor,
    x: Tensor,
    gain: Tensor,
    gate: Tensor | None,
    eps: float,
    feature_dims: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, gain and gate; the last is empty without a gate."""
    check_gradient(grad_output, inverse_rms, x, feature_dims)
    call = NormCall(x, gain, gate, eps, feature_dims)
    grad_x, grad_gain, grad_gate = run_backward(
        grad_output, call, choose_isa(), inverse_rms.contiguous()
    )
    return grad_x, grad_gain, gain.new_empty(0) if grad_gate is None else grad_gate


@gated_rms_norm_backward.register_fake
def _(
    grad_output: Tensor,
    inverse_rms: Tensor,
    x: Tensor,
    gain: Tensor,
    gate: Tensor | None,
    eps: float,
    feature_dims: int,
) -> tuple[Tensor, Tensor, Tensor]:
    grad_gate = gain.new_empty(0) if gate is None else new_parameter(gate)
    return new_like(x, feature_dims), new_parameter(gain), grad_gate


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:3], output[1])
    ctx.options = inputs[3:]


def _differentiate(ctx: Any, grad_output: Tensor, _: Any) -> tuple[Tensor | None, ...]:
    x, gain, gate, inverse_rms = ctx.saved_tensors
    call = NormCall(x, gain, gate, *ctx.options)
    if torch.is_grad_enabled():  # create_graph=True: these gradients are differentiated again
        return *plain_backward(grad_output, *call), None, None
    grad_x, grad_gain, grad_gate = torch.ops.relakit.gated_rms_norm_backward(
        grad_output, inverse_rms, *call
    )
    return grad_x, grad_gain, None if gate is None else grad_gate, None, None


gated_rms_norm.register_autograd(_differentiate, setup_context=_save_for_backward)


def plain_backward(
    grad_output: Tensor,
    x: Tensor,
    gain: Tensor,
    gate: Tensor | None,
    eps: float,
    feature_dims: int,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The gradients of x, gain and gate as a formula, which PyTorch can differentiate."""
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

"""The C++ kernels for RMSNorm, gated or not, on the CPU.

`fused_rms_norm` runs them in one pass over memory, forward and backward, and with heads apart needs
no transposed copy of the output of attention. They are PyTorch operators too:
``relakit::gated_rms_norm`` and ``relakit::gated_rms_norm_backward``.

Shapes: the input is ``[..., features]``, or ``[..., heads, head features]`` where the features are
those of all heads (``feature_dims`` is 1 or 2). Half precision is computed in float32.
"""

import math
import os
from functools import lru_cache
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from relakit.attention.eager import is_plain_eager
from relakit.attention.native import ISA_VARIABLE, choose_kernels, load_extension
from relakit.attention.precision import wide

BACKEND_VARIABLE: Final = "RELAKIT_BACKEND"
DTYPES: Final = (torch.float32, torch.bfloat16)


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
        or not _has_contiguous_features(x)
        or os.environ.get(BACKEND_VARIABLE) == "reference"
    ):
        return None
    return _kernels_for(os.environ.get(ISA_VARIABLE))


@lru_cache(maxsize=8)
def _kernels_for(wanted: str | None) -> str | None:
    """Cached for each value of RELAKIT_CPU_ISA, as asking the extension takes longer than a row."""
    try:
        return choose_kernels()
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
    call = _Call(x, gain, gate, eps, feature_dims)
    if torch.is_grad_enabled() and (
        x.requires_grad or gain.requires_grad or (gate is not None and gate.requires_grad)
    ):
        output: Tensor = _EagerNorm.apply(*call, kernels)  # type: ignore[no-untyped-call]
        return output
    return _forward(call, kernels, needs_inverse_rms=False)[0]


class _Call(NamedTuple):
    """Arguments of the operators, in their order."""

    x: Tensor
    gain: Tensor
    gate: Tensor | None
    eps: float
    feature_dims: int


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
        call = _Call(x, gain, gate, eps, feature_dims)
        output, inverse_rms = _forward(call, kernels, needs_inverse_rms=True)
        ctx.save_for_backward(x, gain, gate, inverse_rms)
        ctx.options = (eps, feature_dims)
        ctx.kernels = kernels
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, gate, inverse_rms = ctx.saved_tensors
        call = _Call(x, gain, gate, *ctx.options)
        # With create_graph=True these gradients are differentiated again.
        if torch.is_grad_enabled() or not is_plain_eager(grad_output, x, gain, gate):
            return *plain_backward(grad_output, *call), None, None, None
        return *_backward(grad_output, call, ctx.kernels, inverse_rms), None, None, None


@torch.library.custom_op("relakit::gated_rms_norm", mutates_args=(), device_types="cpu")
def gated_rms_norm(
    x: Tensor, gain: Tensor, gate: Tensor | None, eps: float, feature_dims: int
) -> tuple[Tensor, Tensor]:
    """The output and, for the backward pass, 1 / RMS of each row. Only the first has gradients."""
    call = _Call(x, gain, gate, eps, feature_dims)
    return _forward(call, choose_kernels(), needs_inverse_rms=True)


@gated_rms_norm.register_fake
def _(
    x: Tensor, gain: Tensor, gate: Tensor | None, eps: float, feature_dims: int
) -> tuple[Tensor, Tensor]:
    return _new_output(x, feature_dims), _new_inverse_rms(x, feature_dims)


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
    _check_gradient(grad_output, inverse_rms, x, feature_dims)
    call = _Call(x, gain, gate, eps, feature_dims)
    grad_x, grad_gain, grad_gate = _backward(
        grad_output, call, choose_kernels(), inverse_rms.contiguous()
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
    grad_gate = gain.new_empty(0) if gate is None else _new_parameter(gate)
    return _new_like(x, feature_dims), _new_parameter(gain), grad_gate


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:3], output[1])
    ctx.options = inputs[3:]


def _differentiate(ctx: Any, grad_output: Tensor, _: Any) -> tuple[Tensor | None, ...]:
    x, gain, gate, inverse_rms = ctx.saved_tensors
    call = _Call(x, gain, gate, *ctx.options)
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


def _forward(call: _Call, kernels: str, *, needs_inverse_rms: bool) -> tuple[Tensor, Tensor]:
    """The output, and 1 / RMS of each row; that is the output again where it is not needed."""
    call = _readable_call(call)
    output = _new_output(call.x, call.feature_dims)
    inverse_rms = _new_inverse_rms(call.x, call.feature_dims) if needs_inverse_rms else output
    load_extension().norm_forward(
        kernels,
        torch.get_num_threads(),
        _describe(call),
        output.data_ptr(),
        inverse_rms.data_ptr() if needs_inverse_rms else 0,
    )
    return output, inverse_rms


def _backward(
    grad_output: Tensor, call: _Call, kernels: str, inverse_rms: Tensor
) -> tuple[Tensor, Tensor, Tensor | None]:
    grad_x, grad_gain = _new_like(call.x, call.feature_dims), _new_parameter(call.gain)
    grad_gate = None if call.gate is None else _new_parameter(call.gate)
    call, grad_output = _readable_call(call), _readable(grad_output, 1)
    load_extension().norm_backward(
        kernels,
        torch.get_num_threads(),
        _describe(call),
        inverse_rms.data_ptr(),
        grad_output.data_ptr(),
        *_rows(grad_output, 1)[2:4],
        grad_x.data_ptr(),
        *_rows(grad_x, call.feature_dims)[2:4],
        grad_x.stride(-2) if call.feature_dims == 2 else 0,
        grad_gain.data_ptr(),
        0 if grad_gate is None else grad_gate.data_ptr(),
    )
    return grad_x, grad_gain, grad_gate


def _describe(call: _Call) -> Any:
    """The call as the kernels read it. It holds addresses: the tensors must outlive it."""
    x, gain, gate, eps, feature_dims = call
    outer, rows, outer_stride, row_stride = _rows(x, feature_dims)
    size = x.size(-1)
    pieces, piece_stride = (x.size(-2), x.stride(-2)) if feature_dims == 2 else (1, 0)
    for name, parameter in (("gain", gain), ("gate", gate)):
        if parameter is not None and parameter.numel() != pieces * size:
            raise ValueError(
                f"the {name} must have one number for each of the {pieces * size} features, "
                f"got shape {tuple(parameter.shape)}"
            )
    return load_extension().NormCall(
        outer,
        rows,
        pieces,
        size,
        x.dtype == torch.bfloat16,
        x.data_ptr(),
        outer_stride,
        row_stride,
        piece_stride,
        gain.data_ptr(),
        gain.dtype == torch.bfloat16,
        0 if gate is None else gate.data_ptr(),
        gate is not None and gate.dtype == torch.bfloat16,
        eps,
    )


def _rows(x: Tensor, feature_dims: int) -> tuple[int, int, int, int]:
    """Rows as two dimensions: their sizes and strides, for a tensor that is `_readable`."""
    shape, strides = x.shape[:-feature_dims], x.stride()
    if len(shape) == 2:
        return shape[0], shape[1], strides[0], strides[1]
    if len(shape) == 1:
        return 1, shape[0], 0, strides[0]
    features = math.prod(x.shape[-feature_dims:])
    return 1, math.prod(shape), 0, features  # contiguous, or a single row


def _readable(x: Tensor, feature_dims: int) -> Tensor:
    """The tensor, or a copy of it, with contiguous features and at most two strides over rows."""
    if _has_contiguous_features(x) and x.dim() - feature_dims <= 2:
        return x
    return x.contiguous()


def _readable_call(call: _Call) -> _Call:
    """The call with tensors that the kernels can read."""
    x, gain, gate, eps, feature_dims = call
    if feature_dims not in (1, 2) or x.dim() < feature_dims:
        raise ValueError(
            f"feature_dims must be 1 or 2 and at most the number of dimensions, got {feature_dims} "
            f"for shape {tuple(x.shape)}"
        )
    for name, tensor in (("x", x), ("gain", gain), ("gate", gate)):
        if tensor is not None and tensor.dtype not in DTYPES:
            raise ValueError(f"{name} must be of dtype float32 or bfloat16, got {tensor.dtype}")
    gate = None if gate is None else gate.contiguous()
    return _Call(_readable(x, feature_dims), gain.contiguous(), gate, eps, feature_dims)


def _has_contiguous_features(x: Tensor) -> bool:
    return x.stride(-1) == 1 or x.size(-1) == 1


def _check_gradient(grad_output: Tensor, inverse_rms: Tensor, x: Tensor, feature_dims: int) -> None:
    rows = x.shape[:-feature_dims]
    expected = (*rows, math.prod(x.shape[-feature_dims:]))
    if grad_output.shape != expected or grad_output.dtype != x.dtype:
        raise ValueError(
            f"the gradient must have the output's shape {tuple(expected)} and dtype {x.dtype}, got "
            f"{tuple(grad_output.shape)} and {grad_output.dtype}"
        )
    if inverse_rms.shape != rows or inverse_rms.dtype != torch.float32:
        raise ValueError(
            f"inverse_rms must be float32 of shape {tuple(rows)}, got {inverse_rms.dtype} of shape "
            f"{tuple(inverse_rms.shape)}"
        )


def _new_output(x: Tensor, feature_dims: int) -> Tensor:
    if feature_dims == 1:
        return x.new_empty(x.shape)
    return x.new_empty((*x.shape[:-2], x.size(-2) * x.size(-1)))


def _new_inverse_rms(x: Tensor, feature_dims: int) -> Tensor:
    return x.new_empty(x.shape[:-feature_dims], dtype=torch.float32)


def _new_like(x: Tensor, feature_dims: int) -> Tensor:
    """Memory for the gradient of x, in the layout of x where the kernels can write it."""
    if x.dim() - feature_dims <= 2:
        like = torch.empty_like(x)
        if _has_contiguous_features(like):
            return like
    return x.new_empty(x.shape)


def _new_parameter(parameter: Tensor) -> Tensor:
    return parameter.new_empty(parameter.shape)

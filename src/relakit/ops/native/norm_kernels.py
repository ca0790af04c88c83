"""Calls of the norm's C++ kernels: memory for the results, addresses, strides, and checks.

`relakit.ops.native.norm` makes PyTorch operators of them, with gradients.
"""

import math
from typing import Any, NamedTuple

import torch
from relakit.ops.native.extension import DTYPES, load_extension
from torch import Tensor


class NormCall(NamedTuple):
    """Arguments of ``relakit::gated_rms_norm``, in their order."""

    x: Tensor
    gain: Tensor
    gate: Tensor | None
    eps: float
    feature_dims: int


def run_forward(call: NormCall, kernels: str, *, needs_inverse_rms: bool) -> tuple[Tensor, Tensor]:
    """The output, and 1 / RMS of each row; that is the output again where it is not needed."""
    call = _readable_call(call)
    output = new_output(call.x, call.feature_dims)
    inverse_rms = new_inverse_rms(call.x, call.feature_dims) if needs_inverse_rms else output
    load_extension().norm_forward(
        kernels,
        torch.get_num_threads(),
        _describe(call),
        output.data_ptr(),
        inverse_rms.data_ptr() if needs_inverse_rms else 0,
    )
    return output, inverse_rms


def run_backward(
    grad_output: Tensor, call: NormCall, kernels: str, inverse_rms: Tensor
) -> tuple[Tensor, Tensor, Tensor | None]:
    grad_x, grad_gain = new_like(call.x, call.feature_dims), new_parameter(call.gain)
    grad_gate = None if call.gate is None else new_parameter(call.gate)
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


def _describe(call: NormCall) -> Any:
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
    if has_contiguous_features(x) and x.dim() - feature_dims <= 2:
        return x
    return x.contiguous()


def _readable_call(call: NormCall) -> NormCall:
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
    return NormCall(_readable(x, feature_dims), gain.contiguous(), gate, eps, feature_dims)


def has_contiguous_features(x: Tensor) -> bool:
    return x.stride(-1) == 1 or x.size(-1) == 1


def check_gradient(grad_output: Tensor, inverse_rms: Tensor, x: Tensor, feature_dims: int) -> None:
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


def new_output(x: Tensor, feature_dims: int) -> Tensor:
    if feature_dims == 1:
        return x.new_empty(x.shape)
    return x.new_empty((*x.shape[:-2], x.size(-2) * x.size(-1)))


def new_inverse_rms(x: Tensor, feature_dims: int) -> Tensor:
    return x.new_empty(x.shape[:-feature_dims], dtype=torch.float32)


def new_like(x: Tensor, feature_dims: int) -> Tensor:
    """Memory for the gradient of x, in the layout of x where the kernels can write it."""
    if x.dim() - feature_dims <= 2:
        like = torch.empty_like(x)
        if has_contiguous_features(like):
            return like
    return x.new_empty(x.shape)


def new_parameter(parameter: Tensor) -> Tensor:
    return parameter.new_empty(parameter.shape)

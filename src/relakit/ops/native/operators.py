"""The C++ kernels as PyTorch operators: ``relakit::rela`` and ``relakit::rela_backward``.

Compilers, tracers and tensor subclasses see attention through them. Where none of those is at work,
`relakit.ops.native.attention` calls the kernels directly.
"""

from typing import Any

import torch
from relakit.ops.call import AttentionCall
from relakit.ops.native import kernel_calls
from relakit.ops.native.kernel_calls import Arguments
from relakit.ops.reference import reference_attention
from torch import Tensor


@torch.library.custom_op("relakit::rela", mutates_args=(), device_types="cpu")
def rela(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    threshold: Tensor | None,
    seed: Tensor | None,
    scale: float,
    power: int,
    is_causal: bool,
    dropout_p: float,
    keep_bits: bool,
) -> tuple[Tensor, Tensor]:
    """Attention over ``[batch, heads, positions, features]``; the mask broadcasts to 4-D.

    Returns the output, and one bit per score for backward (none if they are not to be kept).
    """
    arguments = Arguments(
        query, key, value, mask, threshold, seed, scale, power, is_causal, dropout_p
    )
    bits = kernel_calls.empty_bits(arguments) if keep_bits else None
    output = kernel_calls.forward(arguments, bits=bits)
    return output, query.new_empty((0,), dtype=torch.int64) if bits is None else bits


@rela.register_fake
def _(*inputs: Any) -> tuple[Tensor, Tensor]:
    arguments, keep_bits = Arguments(*inputs[:-1]), inputs[-1]
    bits = (
        kernel_calls.empty_bits(arguments)
        if keep_bits
        else arguments.query.new_empty((0,), dtype=torch.int64)
    )
    return kernel_calls.empty_output(arguments.query, arguments.value), bits


@torch.library.custom_op("relakit::rela_backward", mutates_args=(), device_types="cpu")
def rela_backward(
    grad_output: Tensor,
    bits: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    threshold: Tensor | None,
    seed: Tensor | None,
    scale: float,
    power: int,
    is_causal: bool,
    dropout_p: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of query, key, value and threshold."""
    arguments = Arguments(
        query, key, value, mask, threshold, seed, scale, power, is_causal, dropout_p
    )
    kept = bits if bits.dim() == 4 else None
    dq, dk, dv, dt = kernel_calls.backward(grad_output, arguments, kept, for_threshold=True)
    assert dt is not None
    return dq, dk, dv, dt


@rela_backward.register_fake
def _(grad_output: Tensor, bits: Tensor, *inputs: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    arguments = Arguments(*inputs)
    heads = arguments.query.size(1)
    grad_threshold = arguments.query.new_empty((heads,), dtype=torch.float32)
    return *kernel_calls.empty_gradients(arguments), grad_threshold


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:6], output[1])
    ctx.options = inputs[6:-1]
    ctx.mark_non_differentiable(output[1])


def _differentiate(ctx: Any, grad_output: Tensor, _: Any) -> tuple[Tensor | None, ...]:
    *tensors, bits = ctx.saved_tensors
    dq, dk, dv, dt = any_backward(grad_output, bits, Arguments(*tensors, *ctx.options))
    return dq, dk, dv, None, dt, *[None] * 6


rela.register_autograd(_differentiate, setup_context=_save_for_backward)


def any_backward(
    grad_output: Tensor, bits: Tensor | None, arguments: Arguments
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Gradients of query, key, value and threshold, whoever watches or transforms the call."""
    if torch.is_grad_enabled():  # create_graph=True: these gradients are differentiated again
        return _differentiable_backward(grad_output, arguments)
    if is_batched(grad_output):  # is_grads_batched=True: operators know no such tensors
        with torch.enable_grad():
            gradients = _differentiable_backward(grad_output, arguments)
        dq, dk, dv, dt = gradients
        return dq.detach(), dk.detach(), dv.detach(), None if dt is None else dt.detach()
    if bits is None:
        bits = arguments.query.new_empty((0,), dtype=torch.int64)
    dq, dk, dv, dt = torch.ops.relakit.rela_backward(grad_output, bits, *arguments)
    return dq, dk, dv, None if arguments.threshold is None else dt


def is_batched(tensor: Tensor) -> bool:
    """Whether it is one of a batch of tensors that vmap hides."""
    return not torch.compiler.is_compiling() and torch._C._functorch.is_batchedtensor(tensor)


def _differentiable_backward(
    grad_output: Tensor, arguments: Arguments
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The same gradients by the reference, which autograd can differentiate."""
    if arguments.dropout_p > 0:
        raise RuntimeError(
            "the native backend has no second derivatives with dropout; use backend='reference'"
        )
    threshold = arguments.threshold
    differentiated = [arguments.query, arguments.key, arguments.value]
    if threshold is not None:
        differentiated.append(threshold)
    # Aliases: where one depends on another, or is the same, its gradient must not go on to it.
    inputs = [
        x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in differentiated
    ]
    call = AttentionCall(
        query=inputs[0],
        key=inputs[1],
        value=inputs[2],
        attn_mask=arguments.mask,
        is_causal=arguments.is_causal,
        scale=arguments.scale,
        enable_gqa=True,
        threshold=0.0 if threshold is None else inputs[3],
        power=float(arguments.power),
    )
    output, _ = reference_attention(call)
    dq, dk, dv, *rest = torch.autograd.grad(output, inputs, grad_output, create_graph=True)
    return dq, dk, dv, rest[0] if rest else None

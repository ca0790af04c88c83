"""The C++ kernels as PyTorch operators: ``relakit::rela`` and ``relakit::rela_backward``.

Compilers, tracers, modes and tensor subclasses see attention as these operators. All tensors are
``[batch, heads, positions, features]``; there is one float32 threshold per head.
"""

from typing import Any

import torch
from torch import Tensor

from relakit.ops.native.attention import (
    Options,
    RecordedCall,
    no_bits,
    reference_gradients,
    sum_over_rows,
)
from relakit.ops.native.connection import connected_extension, empty_output, why_not_connected
from relakit.ops.native.layout import with_rows
from relakit.ops.reach import UNLIMITED, Reach, check_starts
from relakit.ops.torch_private import is_batched


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
    before: int = UNLIMITED,
    after: int = UNLIMITED,
    is_lower_right: bool = False,
    query_starts: Tensor | None = None,
    key_starts: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention. The mask broadcasts to 4-D; the seed for dropout is one integer.

    The arguments from ``before`` on are the fields of `Reach`.

    Returns the output, and one bit per score for backward (empty without ``keep_bits``).
    """
    dropout = (dropout_p, 0 if seed is None else int(seed))
    tensors = (with_rows(x) for x in (query, key, value))
    reach = _reach(before, after, is_lower_right, query_starts, key_starts)
    result = _extension().attention(
        *tensors,
        mask,
        dropout,
        is_causal,
        scale,
        True,
        threshold,
        power,
        False,
        False,
        "native",
        keep_bits,
        reach,
    )
    if result is None and reach is not None:
        check_starts(reach, query.size(2), key.size(2))  # compiled code could not check them
    _check_served(
        result, "relakit::rela", query=query, key=key, value=value, mask=mask, threshold=threshold
    )
    output, bits = result
    return output, no_bits(query) if bits is None else bits


@rela.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, *_options: Any) -> tuple[Tensor, Tensor]:
    keep_bits = _options[7]
    shape = (*query.shape[:3], (key.size(2) + 63) // 64)
    bits = query.new_empty(shape, dtype=torch.int64) if keep_bits else no_bits(query)
    return empty_output(with_rows(query), value), bits


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
    before: int = UNLIMITED,
    after: int = UNLIMITED,
    is_lower_right: bool = False,
    query_starts: Tensor | None = None,
    key_starts: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of query, key, value and threshold."""
    reach = _reach(before, after, is_lower_right, query_starts, key_starts)
    options = Options(
        is_causal, scale, power, dropout_p, 0 if seed is None else int(seed), reach=reach
    )
    result = _extension().attention_backward(
        grad_output,
        None,
        None,
        bits.contiguous() if bits.dim() == 4 else None,
        options,
        mask,
        threshold,
        None,
        None,
        tuple(with_rows(x) for x in (query, key, value)),
        True,
        True,
    )
    _check_served(
        result,
        "relakit::rela_backward",
        grad_output=grad_output,
        bits=bits,
        query=query,
        key=key,
        value=value,
        mask=mask,
        threshold=threshold,
    )
    grad_rows, _, _, grad_query, grad_key, grad_value = result[4:]
    return grad_query, grad_key, grad_value, sum_over_rows(grad_rows)


@rela_backward.register_fake
def _(
    grad_output: Tensor, bits: Tensor, query: Tensor, key: Tensor, value: Tensor, *_options: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (query, key, value))
    return dq, dk, dv, query.new_empty((query.size(1),), dtype=torch.float32)


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    query, key, value, mask, threshold, seed, scale, power, is_causal, dropout_p, _ = inputs[:11]
    before, after, is_lower_right, *starts = inputs[11:]
    ctx.save_for_backward(query, key, value, mask, threshold, seed, output[1], *starts)
    ctx.options = (scale, power, is_causal, dropout_p, before, after, is_lower_right)
    ctx.mark_non_differentiable(output[1])


def _differentiate(ctx: Any, grad_output: Tensor, _: Any) -> tuple[Tensor | None, ...]:
    query, key, value, mask, threshold, seed, bits, *starts = ctx.saved_tensors
    scale, power, is_causal, dropout_p, *reach = ctx.options
    if not torch.is_grad_enabled() and not is_batched(grad_output):
        dq, dk, dv, dt = torch.ops.relakit.rela_backward(
            grad_output, bits, query, key, value, mask, threshold, seed, *ctx.options, *starts
        )
    else:
        dt, _, _, dq, dk, dv = reference_gradients(
            RecordedCall(
                tensors=(query, key, value),
                options=Options(
                    is_causal, scale, power, dropout_p, 0, reach=_reach(*reach, *starts)
                ),
                mask=mask,
                threshold=0.0 if threshold is None else threshold,
            ),
            grad_output,
            None,
        )
    return dq, dk, dv, None, None if threshold is None else dt, *[None] * 11


rela.register_autograd(_differentiate, setup_context=_save_for_backward)


def can_keep_bits(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether to keep one bit per score for backward: the extension's rule, for compilers."""
    rows = query.size(0) * query.size(1) * query.size(2)
    numbers = query.numel() + key.numel() + value.numel() + rows * value.size(3)
    bytes_of_bits = rows * ((key.size(2) + 63) // 64) * 8
    return bool(bytes_of_bits <= numbers * query.element_size())


def _reach(*fields: Any) -> Reach | None:
    """The fields as a `Reach`; None if they limit nothing, when ``is_causal`` may be true."""
    reach = Reach(*fields)
    return reach if reach.is_packed or reach[:3] != Reach()[:3] else None


def _extension() -> Any:
    extension = connected_extension()
    if extension is None:
        raise RuntimeError(f"relakit's operators cannot run: {'; '.join(why_not_connected())}")
    return extension


def _check_served(result: object, name: str, **tensors: Tensor | None) -> None:
    """Raise unless the extension served an operator's call."""
    if result is not None:
        return
    if reasons := why_not_connected():
        raise RuntimeError(f"{name} cannot run: {'; '.join(reasons)}")
    given = ", ".join(
        f"{argument} {x if x is None else f'{x.dtype} {tuple(x.shape)}'}"
        for argument, x in tensors.items()
    )
    raise ValueError(
        f"{name} cannot serve these arguments: it takes tensors [batch, heads, positions, "
        "features] of float32 or bfloat16, a mask that broadcasts to [batch, heads, queries, "
        f"keys], and one float32 threshold per head; got {given}"
    )

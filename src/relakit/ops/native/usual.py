"""Attention for calls as they usually are: past the choice of a backend and its checks.

Both take longer than attention over a few dozen positions. Here it is only looked whether all is as
it should be. The rest is left to the long way, which also has the messages.
"""

import math
import os
import sys
from functools import lru_cache
from typing import Any

from torch.compiler import is_dynamo_compiling

import torch
from relakit.ops.native import kernel_calls
from relakit.ops.native.attention import LARGEST_DIM, EagerAttention, threshold_per_head
from relakit.ops.native.direct import CONNECTED, direct_calls
from relakit.ops.native.eager import is_plain_eager
from relakit.ops.native.extension import BACKEND_VARIABLE, DTYPES, why_unavailable
from relakit.ops.native.kernel_calls import Arguments
from relakit.ops.native.operators import any_backward
from torch import Tensor


def usual_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    threshold: float | Tensor,
    power: float,
    backend: str | None,
) -> Tensor | None:
    """The output, or None where anything is unusual or wrong. Not to be called while compiling.

    The backend is "native", or None: if the environment names none, either.
    """
    extension = sys.modules.get("relakit._native")  # found without a call, as it mostly is
    if extension not in CONNECTED:
        extension = direct_calls()
    if extension is None:
        if backend is None and os.environ.get(BACKEND_VARIABLE):
            return None
        if not all(isinstance(x, Tensor) for x in (query, key, value)):
            return None
        return _usual_in_python(query, key, value, mask, is_causal, scale, threshold, power)
    result: Any = extension.direct_forward(
        query, key, value, mask, is_causal, scale, threshold, power, backend
    )
    if type(result) is tuple:
        call = ((is_causal, scale, threshold, power), extension.direct_backward)
        result = _record(query, key, value, mask, result, call)
    output: Tensor | None = result
    return output


class _UsualAttention(torch.autograd.Function):
    """Records what `direct_forward` has computed."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, computed: Any, call: Any
    ) -> Tensor:
        output, bits = computed
        few_bits = bits if type(bits) is bytes else None
        ctx.call = (few_bits, *call)
        ctx.save_for_backward(query, key, value, mask, bits if few_bits is None else None)
        return output  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, mask, bits = ctx.saved_tensors
        few_bits, options, direct_backward = ctx.call
        gradients = None
        if not is_dynamo_compiling():  # whatever else compiles, the extension notices
            any_bits = bits if few_bits is None else few_bits
            gradients = direct_backward(grad_output, query, key, value, mask, any_bits, *options)
        if gradients is None:
            is_causal, scale, threshold, power = options
            thresholds = threshold_per_head(threshold, query)
            arguments = _arguments(query, key, value, mask, is_causal, scale, thresholds, power)
            gradients = any_backward(grad_output, bits, arguments)
        return *gradients[:3], None, None, None


# Not Function.apply, which looks for transforms of torch.func and what they have left behind: here
# there are none, and that takes longer than to record the call.
_record: Any = super(torch.autograd.Function, _UsualAttention).apply


def _arguments(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    threshold: Tensor | None,
    power: float,
) -> Arguments:
    while mask is not None and mask.dim() < 4:
        mask = mask[None]
    return Arguments(
        query,
        key,
        value,
        mask,
        threshold,
        None,
        query.size(3) ** -0.5 if scale is None else scale,
        int(power),
        bool(is_causal),
        0.0,
    )


def _usual_in_python(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    threshold: float | Tensor,
    power: float,
) -> Tensor | None:
    """What `direct_forward` does in C++, for a torch that it cannot read tensors of."""
    if not (
        query.dim() == key.dim() == value.dim() == 4
        and query.dtype in DTYPES
        and query.dtype == key.dtype == value.dtype
        and (power == 1 or power == 2)
        and (scale is None or type(scale) is float)
        and type(threshold) is float
        and -math.inf < threshold < math.inf
    ):
        return None
    batch, heads, queries, dim = query.shape
    key_batch, key_heads, keys, key_dim = key.shape
    value_batch, value_heads, values, value_dim = value.shape
    if not (
        batch == key_batch == value_batch
        and heads == key_heads == value_heads
        and keys == values
        and dim == key_dim
        and 0 < dim <= LARGEST_DIM
        and value_dim <= LARGEST_DIM
        and query.stride(3) == key.stride(3) == value.stride(3) == 1
        and not torch.is_autocast_enabled("cpu")
        and is_plain_eager(query, key, value, mask)
        and not why_unavailable()
    ):
        return None
    if mask is not None:
        if is_causal or mask.requires_grad or mask.dtype not in (torch.bool, *DTYPES):
            return None
        if mask.dtype == torch.bfloat16 != query.dtype or mask.dim() > 4:
            return None
        full = (batch, heads, queries, keys)
        for size, all_of_it in zip(reversed(mask.shape), reversed(full), strict=False):
            if size != all_of_it and size != 1:
                return None
    thresholds = None if threshold == 0 else _same_threshold(heads, threshold)
    arguments = _arguments(query, key, value, mask, is_causal, scale, thresholds, power)
    if torch.is_grad_enabled() and (
        query.requires_grad or key.requires_grad or value.requires_grad
    ):
        output: Tensor = EagerAttention.apply(*arguments, None)  # type: ignore[no-untyped-call]
        return output
    return kernel_calls.forward(arguments)


@lru_cache(maxsize=64)  # called where tensors are plain, so what is kept is, too
def _same_threshold(heads: int, threshold: float) -> Tensor:
    with torch.inference_mode(False):
        return torch.full((heads,), threshold, dtype=torch.float32, device="cpu")

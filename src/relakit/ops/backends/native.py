"""Attention with the C++ kernels: all of it for ReLU, weights for sparsemax and 1.5-entmax.

Most calls of ReLU attention go straight to the extension (`relakit.ops.attention`) and never get
here. This file has the reasons why a call cannot run there, and serves calls that need more: more
or fewer than four dimensions, broadcasting, division by length, or an operator for modes and
compilers.
"""

import math
from dataclasses import replace
from typing import Any, Final

import torch
from torch import Tensor, nn

from relakit.ops.backends.base import Backend
from relakit.ops.backends.reference import run_in_steps
from relakit.ops.call import AttentionCall, AttentionResult, RowStatistics
from relakit.ops.native import operators
from relakit.ops.native.attention import threshold_per_head
from relakit.ops.native.connection import connected_extension, draw_seed, why_not_connected
from relakit.ops.native.extension import DTYPES, load_extension
from relakit.ops.native.layout import in_four_dims, with_rows
from relakit.ops.native.simplex import SIMPLEX_ACTIVATIONS
from relakit.ops.precision import wide, without_autocast
from relakit.ops.reach import Reach
from relakit.ops.torch_private import is_any_autocast_enabled, is_forward_mode, is_transforming

CPU: Final = torch.device("cpu")


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _largest_dim() -> int:
    largest: int = load_extension().LARGEST_DIM
    return largest


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _is_exporting() -> bool:
    return bool(torch.compiler.is_exporting())


class NativeBackend(Backend):
    """The C++ kernels, on the CPU."""

    name = "native"
    description = (
        "C++ kernels; relu, whose zeros they skip, sparsemax and entmax15, on the CPU, float32 and "
        "bfloat16"
    )
    activations = ("relu", *SIMPLEX_ACTIVATIONS)

    def unavailable(self) -> list[str]:
        return why_not_connected()

    def refusals(self, call: AttentionCall) -> list[str]:
        query = call.query
        reasons = []
        if query.device != CPU:
            reasons.append(f"it runs on the CPU, not on {query.device.type!r}")
        if query.dtype not in DTYPES:
            reasons.append(f"it computes float32 and bfloat16, not {query.dtype}")
        if call.activation in SIMPLEX_ACTIVATIONS:
            reasons += _refusals_of_weights(call)
        else:
            reasons += _refusals_of_relu(call)
        if is_transforming():
            reasons.append("it cannot run inside torch.func transforms such as vmap")
        if is_forward_mode():
            reasons.append("it has no forward-mode derivatives (torch.autograd.forward_ad)")
        return reasons

    def reservations(self, call: AttentionCall) -> list[str]:
        reasons = []
        if _is_exporting() or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            reasons.append("a program that is exported or traced would need relakit to run")
        for tensor in (call.query, call.key, call.value):
            if type(tensor) is not Tensor and type(tensor) is not nn.Parameter:
                reasons.append(f"it may not know how to handle a {type(tensor).__name__}")
                break
        return reasons

    def run(self, call: AttentionCall) -> AttentionResult:
        if call.activation in SIMPLEX_ACTIVATIONS:
            return run_in_steps(call, SIMPLEX_ACTIVATIONS)
        with without_autocast(call.query):
            if call.length_exponent == 0:
                result = _run(call)
            else:  # in float32, so that the quotients are rounded only once
                result = _divided_by_length(call, _run(_widened(call)))
        return result if call.query.dim() == call.key.dim() == 4 else _reshaped(call, result)


def needs_gradients(call: AttentionCall) -> bool:
    """Whether autograd records the call."""
    return torch.is_grad_enabled() and (
        call.query.requires_grad
        or call.key.requires_grad
        or call.value.requires_grad
        or (isinstance(call.threshold, Tensor) and call.threshold.requires_grad)
    )


def _refusals_of_weights(call: AttentionCall) -> list[str]:
    """Reasons that only concern activations whose weights alone come from the extension."""
    if not why_not_connected() and not _is_plain(call):
        return [
            f"it computes {call.activation} only on ordinary tensors, where the call is not "
            "compiled or watched, and autocast is not on for another device"
        ]
    return []


def _refusals_of_relu(call: AttentionCall) -> list[str]:
    reasons = []
    if call.power not in (1, 2):
        reasons.append(f"it knows the powers 1 and 2, not {call.power}")
    if call.need_weights == "csr" and needs_gradients(call):
        reasons.append("it returns sparse weights only where no gradients are recorded")
    if not why_not_connected():
        reasons += _refusals_of_extension(call)
    if call.attn_mask is not None and call.attn_mask.requires_grad:
        reasons.append("it has no gradient for the mask")
    if not _has_weights_for_all_values(call):
        reasons.append("value must not have more leading dimensions than query and key")
    return reasons


def _refusals_of_extension(call: AttentionCall) -> list[str]:
    reasons = []
    if (call.need_weights or call.need_statistics) and not _is_plain(call):
        reasons.append(
            "it returns only the output where the call is compiled or watched, or autocast is on "
            "for another device"
        )
    if max(call.query.size(-1), call.value.size(-1)) > _largest_dim():
        reasons.append(f"it takes at most {_largest_dim()} features per head")
    return reasons


def _is_plain(call: AttentionCall) -> bool:
    """Whether torch only runs operations on ordinary tensors, so that no operator is needed."""
    if torch.compiler.is_compiling():
        return False
    threshold = call.threshold if isinstance(call.threshold, Tensor) else None
    tensors = (call.query, call.key, call.value, call.attn_mask, threshold)
    with without_autocast(call.query):
        return not is_any_autocast_enabled() and bool(connected_extension().is_plain(*tensors))


def _has_weights_for_all_values(call: AttentionCall) -> bool:
    """Whether value's leading dimensions broadcast to the weights' without enlarging them."""
    query, key, value = call.query, call.key, call.value
    is_4d = query.dim() == key.dim() == value.dim() == 4
    is_one_batch = is_4d and value.size(0) == key.size(0) == query.size(0)
    if is_one_batch and (call.enable_gqa or value.size(1) == query.size(1)):
        return True
    lead, value_lead = call.weights_shape[:-2], tuple(value.shape[:-2])
    if call.enable_gqa:
        lead, value_lead = lead[:-1], value_lead[:-1]
    return tuple(torch.broadcast_shapes(lead, value_lead)) == lead  # type: ignore[no-untyped-call]


def _widened(call: AttentionCall) -> AttentionCall:
    """The call with its tensors in the precision to compute in."""
    mask = None if call.attn_mask is None else wide(call.attn_mask)
    query, key, value = wide(call.query), wide(call.key), wide(call.value)
    return replace(call, query=query, key=key, value=value, attn_mask=mask)


def _run(call: AttentionCall) -> AttentionResult:
    """Run the call in four dimensions, without division by length."""
    tensors = [with_rows(x) for x in _as_4d(call)]
    mask = None if call.attn_mask is None else _mask_as_4d(call.attn_mask, call)
    threshold = threshold_per_head(call.threshold, tensors[0])
    # The extension reads only Python numbers, not NumPy's.
    scale, dropout_p = float(call.score_scale), float(call.dropout_p)
    if not torch.compiler.is_compiling():
        result = connected_extension().attention(
            *tensors,
            mask,
            dropout_p,
            bool(call.is_causal),
            scale,
            True,
            threshold,
            call.power,
            call.need_weights,
            call.need_statistics,
            "native",
            None,
            call.reach,
        )
        if result is not None:
            return native_result(result, call.query.dtype)
    if call.need_weights or call.need_statistics:  # `refusals` should have said so
        raise RuntimeError(
            "the C++ kernels refused a call that asks for weights or statistics; use "
            "backend='reference'"
        )
    seed = draw_seed() if dropout_p > 0 else None
    reach = call.reach or Reach()
    # With packed sequences, the number of bits depends on lengths that compilers cannot know.
    keep_bits = needs_gradients(call) and not reach.is_packed and operators.can_keep_bits(*tensors)
    output, _ = torch.ops.relakit.rela(
        *tensors,
        mask,
        threshold,
        seed,
        scale,
        int(call.power),
        bool(call.is_causal),
        dropout_p,
        keep_bits,
        *reach,
    )
    return AttentionResult(output)


def native_result(result: Any, dtype: torch.dtype) -> AttentionResult:
    """The extension's return value as an AttentionResult."""
    if isinstance(result, Tensor):
        return AttentionResult(result)
    output, weights, nonzeros, sums = result
    if isinstance(weights, tuple):
        starts, columns, numbers, *shape = weights
        weights = torch.sparse_csr_tensor(
            starts, columns, numbers.to(dtype), tuple(shape), check_invariants=False
        )
    statistics = None
    if nonzeros is not None and sums is not None:
        statistics = RowStatistics(nonzeros, sums)
    return AttentionResult(output, weights, statistics)


def _as_4d(call: AttentionCall) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value, ``[batch, heads, positions, features]``; views if possible."""
    query, key, value = call.query, call.key, call.value
    if (
        query.dim() == key.dim() == value.dim() == 4
        and query.shape[:2] == key.shape[:2] == value.shape[:2]
    ):
        return query, key, value
    lead = call.weights_shape[:-2]

    def reshaped(tensor: Tensor, lead: tuple[int, ...]) -> Tensor:
        tensor = tensor.expand(*lead, *tensor.shape[-2:])
        heads = lead[-1] if lead else 1
        if tensor.dim() == 4:
            return tensor
        return tensor.reshape(math.prod(lead[:-1]), heads, *tensor.shape[-2:])

    query = reshaped(query, lead)
    key, value = (
        reshaped(x, (*lead[:-1], x.size(-3)) if call.enable_gqa else lead) for x in (key, value)
    )
    if key.size(1) != value.size(1):  # key and value have groups of different sizes
        key, value = (x.repeat_interleave(query.size(1) // x.size(1), 1) for x in (key, value))
    return query, key, value


def _mask_as_4d(mask: Tensor, call: AttentionCall) -> Tensor:
    """A mask ``[batch, heads, queries, keys]`` or broadcastable to it; a view in the 4-D case."""
    mask = in_four_dims(mask)
    lead = call.weights_shape[:-2]
    if len(lead) <= 2:
        return mask
    mask = mask.expand(*lead, *mask.shape[-2:])
    return mask.reshape(math.prod(lead[:-1]), lead[-1], *mask.shape[-2:])


def _reshaped(call: AttentionCall, result: AttentionResult) -> AttentionResult:
    """The result, with four dimensions turned back into those of the call."""
    lead = call.weights_shape[:-2]
    output = result.output.reshape(*lead, *result.output.shape[-2:])
    weights, statistics = result.weights, result.statistics
    if weights is not None and weights.layout == torch.strided:
        weights = weights.reshape(*lead, *weights.shape[-2:])
    if statistics is not None:
        shape = output.shape[:-1]
        statistics = RowStatistics(
            statistics.nonzeros.reshape(shape), statistics.sums.reshape(shape)
        )
    return AttentionResult(output, weights, statistics)


def _divided_by_length(call: AttentionCall, result: AttentionResult) -> AttentionResult:
    """Divide the weights, and what depends on them, by (number of valid keys) to a power.

    ``result`` is in float32; the returned output and weights are in the dtype of the call.
    """
    queries, keys = call.query.size(-2), call.key.size(-2)
    mask = call.attn_mask
    if call.is_causal:
        ends = torch.arange(1, queries + 1, device=call.query.device)
        valid = ends.clamp(max=keys)[:, None]
    elif mask is None and call.reach is None:
        valid = torch.full((1, 1), keys, device=call.query.device)
    else:
        visible = call.visible_by_place()
        if mask is not None:
            mask = _mask_as_4d(mask, call)
            shown = mask if mask.dtype == torch.bool else mask != -math.inf
            visible = shown if visible is None else shown & visible
        assert visible is not None
        valid = visible.expand(*visible.shape[:-1], keys).sum(-1, keepdim=True)
    # [..., queries, 1]; torch would turn integers into its default dtype.
    factor = valid.clamp(min=1).to(torch.float32).pow(-float(call.length_exponent))
    dtype = call.query.dtype
    output = (result.output * factor).to(dtype)
    weights, statistics = result.weights, result.statistics
    if weights is not None and weights.layout == torch.sparse_csr:
        rows = factor.expand(*result.output.shape[:-1], 1).flatten()
        values = weights.values() * rows.repeat_interleave(weights.crow_indices().diff())
        weights = torch.sparse_csr_tensor(
            weights.crow_indices(),
            weights.col_indices(),
            values.to(dtype),
            weights.shape,
            check_invariants=False,
        )
    elif weights is not None:
        weights = (weights * factor).to(dtype)
    if statistics is not None:
        statistics = statistics._replace(sums=statistics.sums * factor.squeeze(-1))
    return AttentionResult(output, weights, statistics)

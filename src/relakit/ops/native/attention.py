"""Attention on the C++ kernels, for the calls that `backends.NativeBackend` does not refuse."""

import math
from typing import Any, Final

import torch
from relakit.ops.call import AttentionCall, AttentionResult, RowStatistics
from relakit.ops.native import kernel_calls
from relakit.ops.native.eager import is_plain_eager
from relakit.ops.native.kernel_calls import Arguments
from relakit.ops.native.operators import any_backward
from torch import Tensor

LARGEST_DIM: Final = 256


def is_transforming() -> bool:
    """Whether vmap, grad or another torch.func transform is at work."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._functorch.peek_interpreter_stack() is not None


def needs_gradients(call: AttentionCall) -> bool:
    """Whether autograd is to record the call."""
    return torch.is_grad_enabled() and (
        call.query.requires_grad
        or call.key.requires_grad
        or call.value.requires_grad
        or (isinstance(call.threshold, Tensor) and call.threshold.requires_grad)
    )


def native_attention(call: AttentionCall) -> AttentionResult:
    """Run a call that `NativeBackend.refusals` had nothing against."""
    arguments = _arguments(call)
    result = _run(call, arguments)
    if call.length_exponent != 0:
        result = _divide_by_length(call, result)
    if call.query.dim() == call.key.dim() == 4:
        return result
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


def _run(call: AttentionCall, arguments: Arguments) -> AttentionResult:
    with_gradients = needs_gradients(call)
    if not is_plain_eager(*arguments[:5]):
        keep_bits = with_gradients and kernel_calls.can_keep_bits(arguments)
        output, _ = torch.ops.relakit.rela(*arguments, keep_bits)
        return AttentionResult(output)
    statistics = _empty_statistics(arguments) if call.need_statistics else None
    if with_gradients:
        output = EagerAttention.apply(*arguments, statistics)  # type: ignore[no-untyped-call]
        return AttentionResult(output, None, statistics)
    if not call.need_weights:
        return AttentionResult(
            kernel_calls.forward(arguments, statistics=statistics), None, statistics
        )
    if call.need_weights == "csr":
        sink = kernel_calls.sparse_sink(arguments)
        output = kernel_calls.forward(arguments, statistics=statistics, sink=sink)
        weights = kernel_calls.sparse_weights(sink, arguments)
    else:
        sink, weights = kernel_calls.dense_sink(arguments)
        output = kernel_calls.forward(arguments, statistics=statistics, sink=sink)
    return AttentionResult(output, weights, statistics)


class EagerAttention(torch.autograd.Function):
    """The kernels without the operators around them."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        arguments, statistics = Arguments(*inputs[:-1]), inputs[-1]
        bits = None
        if kernel_calls.can_keep_bits(arguments):
            bits = kernel_calls.empty_bits(arguments)
        ctx.save_for_backward(*arguments[:6], bits)
        ctx.options = arguments[6:]
        return kernel_calls.forward(arguments, bits=bits, statistics=statistics)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, bits = ctx.saved_tensors
        arguments = Arguments(*tensors, *ctx.options)
        if torch.is_grad_enabled() or not is_plain_eager(grad_output, *arguments[:5]):
            dq, dk, dv, dt = any_backward(grad_output, bits, arguments)
        else:
            for_threshold = arguments.threshold is not None and bool(ctx.needs_input_grad[4])
            dq, dk, dv, dt = kernel_calls.backward(
                grad_output, arguments, bits, for_threshold=for_threshold
            )
        return dq, dk, dv, None, dt, *[None] * 6


def _arguments(call: AttentionCall) -> Arguments:
    query, key, value = call.query, call.key, call.value
    if (
        not query.dim() == key.dim() == value.dim() == 4
        or not query.shape[:2] == key.shape[:2] == value.shape[:2]
    ):
        query, key, value = _as_4d(call)
    query, key, value = (x if x.stride(-1) == 1 else x.contiguous() for x in (query, key, value))
    mask = call.attn_mask
    # One draw per call, so that torch.manual_seed makes dropout repeatable.
    seed = torch.randint(2**62, (1,), device=query.device) if call.dropout_p > 0 else None
    return Arguments(
        query,
        key,
        value,
        None if mask is None else _mask_as_4d(mask, call),
        threshold_per_head(call.threshold, query),
        seed,
        call.score_scale,
        int(call.power),
        bool(call.is_causal),
        call.dropout_p,
    )


def threshold_per_head(threshold: float | Tensor, query: Tensor) -> Tensor | None:
    """One float32 for each head of the query; None if all are 0."""
    heads = query.size(1)
    if isinstance(threshold, Tensor):
        return threshold.to(torch.float32).expand(heads)
    if threshold == 0:
        return None
    return query.new_full((heads,), threshold, dtype=torch.float32)


def _as_4d(call: AttentionCall) -> tuple[Tensor, Tensor, Tensor]:
    """``[batch, heads, positions, features]``; views if possible."""
    lead = call.weights_shape[:-2]

    def reshaped(tensor: Tensor, lead: tuple[int, ...]) -> Tensor:
        tensor = tensor.expand(*lead, *tensor.shape[-2:])
        heads = lead[-1] if lead else 1
        if tensor.dim() == 4:
            return tensor
        return tensor.reshape(math.prod(lead[:-1]), heads, *tensor.shape[-2:])

    query = reshaped(call.query, lead)
    key, value = (
        reshaped(x, (*lead[:-1], x.size(-3)) if call.enable_gqa else lead)
        for x in (call.key, call.value)
    )
    if key.size(1) != value.size(1):  # grouped queries with a group size of their own for values
        key, value = (x.repeat_interleave(query.size(1) // x.size(1), 1) for x in (key, value))
    return query, key, value


def _mask_as_4d(mask: Tensor, call: AttentionCall) -> Tensor:
    """Broadcast views stay views where the call has the usual four dimensions."""
    while mask.dim() < 4:
        mask = mask[None]
    lead = call.weights_shape[:-2]
    if len(lead) <= 2:
        return mask
    mask = mask.expand(*lead, *mask.shape[-2:])
    return mask.reshape(math.prod(lead[:-1]), lead[-1], *mask.shape[-2:])


def _empty_statistics(arguments: Arguments) -> RowStatistics:
    rows = arguments.query.shape[:3]
    return RowStatistics(
        arguments.query.new_empty(rows, dtype=torch.int32),
        arguments.query.new_empty(rows, dtype=torch.float32),
    )


def _divide_by_length(call: AttentionCall, result: AttentionResult) -> AttentionResult:
    """Divide weights, and with them all that follows, by (number of valid keys) to a power."""
    queries, keys = call.query.size(-2), call.key.size(-2)
    mask = call.attn_mask
    if call.is_causal:
        ends = torch.arange(1, queries + 1, device=call.query.device)
        valid = ends.clamp(max=keys)[:, None]
    elif mask is None:
        valid = torch.full((1, 1), keys, device=call.query.device)
    else:
        mask = _mask_as_4d(mask, call)
        visible = mask if mask.dtype == torch.bool else mask != -math.inf
        valid = visible.expand(*visible.shape[:-1], keys).sum(-1, keepdim=True)
    factor = valid.clamp(min=1).pow(-float(call.length_exponent))  # [..., queries, 1], float32
    output = (result.output * factor).to(result.output.dtype)
    weights, statistics = result.weights, result.statistics
    if weights is not None and weights.layout == torch.sparse_csr:
        rows = factor.expand(*result.output.shape[:-1], 1).flatten()
        values = weights.values() * rows.repeat_interleave(weights.crow_indices().diff())
        weights = torch.sparse_csr_tensor(
            weights.crow_indices(),
            weights.col_indices(),
            values.to(weights.dtype),
            weights.shape,
            check_invariants=False,
        )
    elif weights is not None:
        weights = (weights * factor).to(weights.dtype)
    if statistics is not None:
        statistics = statistics._replace(sums=statistics.sums * factor.squeeze(-1))
    return AttentionResult(output, weights, statistics)

"""The autograd side of attention in C++: a function that records a call, and its gradients.

The extension computes a call, then records it here. Backward goes to the extension if torch only
runs operations, and to an operator otherwise. The reference computes the gradients if they are to
be differentiated again, come in batches, or arrive at the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from relakit.ops.call import AttentionCall
from relakit.ops.native.extension import load_extension
from relakit.ops.native.layout import (
    concatenated,
    in_four_dims,
    joined_projections,
    split_projection,
    split_projections,
)
from relakit.ops.native.norm import norm_gradients
from relakit.ops.norms import gated_rms_norm
from relakit.ops.reach import Reach
from relakit.ops.reference import reference_attention, reference_weights
from relakit.ops.torch_private import is_batched, recorder_of

Gradients: TypeAlias = list[Tensor | None]


class Options(NamedTuple):
    """The other arguments of a call; the extension writes and reads these fields by position."""

    is_causal: bool
    scale: float
    power: int
    dropout_p: float
    seed: int
    heads: int = 0
    """0: the tensors are query, key and value, ``[batch, heads, positions, features]``. Otherwise
    they are projections ``[batch, positions, heads * features]``: three; or two, for the query and
    for key and value together; or one for all."""
    positions: int = 1
    """Which dimension of a projection holds the positions: 0 or 1."""
    eps: float = 0.0
    """The norm's eps, if there is a gain."""
    reach: Reach | None = None


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    """What computing the gradients of a call needs."""

    tensors: Sequence[Tensor]
    options: Options
    mask: Tensor | None = None
    threshold: Tensor | float = 0.0
    gain: Tensor | None = None
    gate: Tensor | None = None
    mixed: Tensor | None = None
    """The norm's input; None without a norm."""
    weights: Tensor | None = None
    """Kept only with dropout: they show what was dropped."""
    bits: Tensor | None = None
    """One bit per score, kept by the forward pass."""


class Attention(torch.autograd.Function):
    """Records what the extension has computed. Only the extension calls it."""

    @staticmethod
    def forward(
        ctx: Any,
        computed: tuple[Tensor, Tensor | None],
        kept: tuple[Tensor | None, Tensor | bytes | None, Tensor | bytes | None],
        options: tuple[Any, ...],
        mask: Tensor | None,
        threshold: Tensor | float | None,
        gain: Tensor | None,
        gate: Tensor | None,
        *tensors: Tensor,
    ) -> Any:
        output, weights = computed
        mixed, inverse_rms, bits = kept
        # Only tensors can be saved; numbers and bytes stay on the context. Backward needs the
        # weights only to know which were dropped.
        number = None if isinstance(threshold, Tensor) else threshold
        few_rms = inverse_rms if type(inverse_rms) is bytes else None
        few_bits = bits if type(bits) is bytes else None
        ctx.call = (options, number, few_rms, few_bits)
        ctx.save_for_backward(
            mask,
            threshold if number is None else None,
            gain,
            gate,
            mixed,
            inverse_rms if few_rms is None else None,
            bits if few_bits is None else None,
            weights if options[3] > 0 else None,
            *tensors,
        )
        if weights is None:
            return output
        ctx.set_materialize_grads(False)
        return output, weights

    @staticmethod
    def backward(
        ctx: Any, grad_output: Tensor | None, grad_weights: Tensor | None = None
    ) -> tuple[Tensor | None, ...]:
        mask, learned, gain, gate, mixed, inverse_rms, bits, weights, *tensors = ctx.saved_tensors
        options, number, few_rms, few_bits = ctx.call
        threshold = number if learned is None else learned
        wants_threshold = learned is not None and bool(ctx.needs_input_grad[4])
        gradients: tuple[Tensor | None, ...] | None = None
        if grad_output is not None and not is_dynamo_compiling():
            gradients = load_extension().attention_backward(
                grad_output,
                mixed,
                inverse_rms if few_rms is None else few_rms,
                bits if few_bits is None else few_bits,
                options,
                mask,
                threshold,
                gain,
                gate,
                tuple(tensors),
                wants_threshold,
                False,
            )
        if gradients is not None and grad_weights is None and not wants_threshold:
            return gradients
        call = RecordedCall(
            tensors=tensors,
            options=Options(*options),
            mask=mask,
            threshold=0.0 if threshold is None else threshold,
            gain=gain,
            gate=gate,
            mixed=mixed,
            weights=weights,
            bits=bits,
        )
        found: Gradients
        if gradients is not None:
            found = list(gradients[4:])
            if wants_threshold:
                found[0] = sum_over_rows(found[0])
            if grad_weights is not None:
                found = _added(found, _weights_gradients(call, grad_weights))
        else:
            found = _other_gradients(call, grad_output, grad_weights)
        return None, None, None, None, *found


record_attention: Any = recorder_of(Attention)


def sum_over_rows(grad_rows: Tensor | None) -> Tensor:
    """Threshold gradients ``[heads]`` from score gradients per row, ``[batch, heads, queries]``."""
    assert grad_rows is not None
    # In float64, because there is one term per row.
    return -grad_rows.double().sum((0, 2)).float()


def _other_gradients(
    call: RecordedCall, grad_output: Tensor | None, grad_weights: Tensor | None = None
) -> Gradients:
    """Gradients of threshold, gain, gate and the tensors, without the extension's backward."""
    if torch.is_grad_enabled() or any(
        grad is not None and is_batched(grad) for grad in (grad_output, grad_weights)
    ):
        return reference_gradients(call, grad_output, grad_weights)
    found: Gradients = [None] * (3 + len(call.tensors))
    if grad_output is not None:
        found = _operator_gradients(call, grad_output)
    if grad_weights is not None:
        found = _added(found, _weights_gradients(call, grad_weights))
    return found


def _operator_gradients(call: RecordedCall, grad_output: Tensor) -> Gradients:
    """The same gradients from the operators, which modes and compilers can see."""
    options = call.options
    grad_gain, grad_gate = None, None
    if call.gain is not None:
        assert call.mixed is not None
        grad_output, grad_gain, grad_gate = norm_gradients(
            grad_output, call.mixed, call.gain, call.gate, options.eps, 1
        )
    if options.heads:
        grad_output = split_projection(grad_output, 1, options.heads, options.positions)[0]
    query, key, value = heads_of(call.tensors, options)
    seed = torch.tensor([options.seed]) if options.dropout_p > 0 else None
    *grads, grad_threshold = torch.ops.relakit.rela_backward(
        grad_output,
        no_bits(query) if call.bits is None else call.bits,
        query,
        key,
        value,
        None if call.mask is None else in_four_dims(call.mask),
        threshold_per_head(call.threshold, query),
        seed,
        options.scale,
        options.power,
        options.is_causal,
        options.dropout_p,
        *(options.reach or Reach()),
    )
    if options.heads:
        grads = joined_projections(grads, len(call.tensors), options.positions)
    is_learned = isinstance(call.threshold, Tensor)
    return [grad_threshold if is_learned else None, grad_gain, grad_gate, *grads]


def reference_gradients(
    call: RecordedCall, grad_output: Tensor | None, grad_weights: Tensor | None
) -> Gradients:
    """The same gradients from the reference, which autograd can differentiate."""
    if call.options.dropout_p > 0:
        raise RuntimeError(
            "the native backend has no second or batched derivatives with dropout; "
            "use backend='reference'"
        )
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        inputs = _aliases(call)
        attention_call = _reference_call(call.options, call.mask, inputs)
        output, weights = reference_attention(attention_call)
        if call.options.heads:
            output = concatenated(output, call.options.positions)
        if inputs.gain is not None:
            output = gated_rms_norm(output, inputs.gain, inputs.gate, eps=call.options.eps)
        results = [
            (x, grad)
            for x, grad in ((output, grad_output), (weights, grad_weights))
            if grad is not None
        ]
        return _differentiated(results, inputs, create_graph=create_graph)


def _weights_gradients(call: RecordedCall, grad_weights: Tensor) -> Gradients:
    """What a gradient of the weights contributes, computed with the reference formula."""
    with torch.enable_grad():
        inputs = _aliases(call)
        weights, _ = reference_weights(_reference_call(call.options, call.mask, inputs))
        if call.options.dropout_p > 0:
            assert call.weights is not None
            share = 1 - call.options.dropout_p
            weights = weights * (call.weights != 0) * (1 / share if share > 0 else 0.0)
        return _differentiated([(weights, grad_weights)], inputs, create_graph=False)


def _differentiated(
    results: list[tuple[Tensor, Tensor]], inputs: "_Inputs", *, create_graph: bool
) -> Gradients:
    wanted = [x for x in inputs.in_order() if x is not None]
    found = torch.autograd.grad(
        [x for x, _ in results],
        wanted,
        [grad.to(x.dtype) for x, grad in results],
        create_graph=create_graph,
        allow_unused=True,
    )
    remaining = iter(found)
    return [None if x is None else next(remaining) for x in inputs.in_order()]


@dataclass(frozen=True)
class _Inputs:
    """Aliases of everything that may need a gradient."""

    threshold: Tensor | None
    gain: Tensor | None
    gate: Tensor | None
    tensors: list[Tensor]
    number: float
    """The threshold if it is not a tensor."""

    def in_order(self) -> Gradients:
        return [self.threshold, self.gain, self.gate, *self.tensors]


def _aliases(call: RecordedCall) -> _Inputs:
    # Aliases, so that gradients stop here: one input may be another, or depend on it.
    def alias(x: Tensor | None) -> Tensor | None:
        if x is None:
            return None
        return x.view_as(x) if x.requires_grad else x.detach().requires_grad_()

    is_learned = isinstance(call.threshold, Tensor)
    return _Inputs(
        alias(call.threshold) if isinstance(call.threshold, Tensor) else None,
        alias(call.gain),
        alias(call.gate),
        [x for x in map(alias, call.tensors) if x is not None],
        0.0 if is_learned else float(call.threshold),
    )


def _reference_call(options: Options, mask: Tensor | None, inputs: _Inputs) -> AttentionCall:
    """The call in the form that the reference takes, without dropout."""
    query, key, value = heads_of(inputs.tensors, options)
    return AttentionCall(
        query=query,
        key=key,
        value=value,
        attn_mask=mask,
        is_causal=options.is_causal,
        scale=options.scale,
        enable_gqa=True,
        threshold=inputs.number if inputs.threshold is None else inputs.threshold,
        power=float(options.power),
        reach=options.reach,
    )


def _added(first: Gradients, second: Gradients) -> Gradients:
    return [
        y if x is None else x if y is None else x + y for x, y in zip(first, second, strict=True)
    ]


def threshold_per_head(threshold: float | Tensor, query: Tensor) -> Tensor | None:
    """One float32 per query head; None if the threshold is the number 0."""
    heads = query.size(1)
    if isinstance(threshold, Tensor):
        return threshold.to(torch.float32).expand(heads)
    if threshold == 0:
        return None
    return query.new_full((heads,), threshold, dtype=torch.float32)


def heads_of(tensors: Sequence[Tensor], options: Options) -> tuple[Tensor, ...]:
    """Query, key and value, ``[batch, heads, positions, features]``."""
    if options.heads == 0:
        return tuple(tensors)
    return split_projections(tensors, options.heads, options.positions)


def no_bits(query: Tensor) -> Tensor:
    """An empty tensor for when no bits are kept: operators cannot return optional results."""
    return query.new_empty((0,), dtype=torch.int64)

"""The attention function."""

from dataclasses import replace
from typing import Any, Literal, overload

from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import handle_torch_function, has_torch_function

from relakit.ops.backends import BackendName, choose_backend
from relakit.ops.backends.native import native_result
from relakit.ops.call import AttentionCall, AttentionResult, check_call, check_tensor
from relakit.ops.causal_bias import causal_pattern
from relakit.ops.listeners import is_recording, report
from relakit.ops.native.connection import connected_extension
from relakit.ops.options import ActivationName
from relakit.ops.precision import follow_autocast
from relakit.ops.reach import Alignment, Reach, SequenceStarts, Window, reach_of


@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = ...,
    dropout_p: float = ...,
    is_causal: bool = ...,
    *,
    window: Window = ...,
    align: Alignment = ...,
    sequence_starts: SequenceStarts = ...,
    scale: float | None = ...,
    enable_gqa: bool = ...,
    activation: ActivationName = ...,
    threshold: float | Tensor = ...,
    power: float = ...,
    length_exponent: float = ...,
    need_weights: Literal[False] = ...,
    backend: BackendName | None = ...,
) -> Tensor: ...


@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = ...,
    dropout_p: float = ...,
    is_causal: bool = ...,
    *,
    window: Window = ...,
    align: Alignment = ...,
    sequence_starts: SequenceStarts = ...,
    scale: float | None = ...,
    enable_gqa: bool = ...,
    activation: ActivationName = ...,
    threshold: float | Tensor = ...,
    power: float = ...,
    length_exponent: float = ...,
    need_weights: Literal[True],
    backend: BackendName | None = ...,
) -> tuple[Tensor, Tensor]: ...


@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = ...,
    dropout_p: float = ...,
    is_causal: bool = ...,
    *,
    window: Window = ...,
    align: Alignment = ...,
    sequence_starts: SequenceStarts = ...,
    scale: float | None = ...,
    enable_gqa: bool = ...,
    activation: ActivationName = ...,
    threshold: float | Tensor = ...,
    power: float = ...,
    length_exponent: float = ...,
    need_weights: bool = ...,
    backend: BackendName | None = ...,
) -> Tensor | tuple[Tensor, Tensor]: ...


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    window: Window = None,
    align: Alignment = "upper_left",
    sequence_starts: SequenceStarts = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    activation: ActivationName = "relu",
    threshold: float | Tensor = 0.0,
    power: float = 1.0,
    length_exponent: float = 0.0,
    need_weights: bool = False,
    backend: BackendName | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Attention with a choice of activation: ``f(scale * Q K^T + bias) V``.

    Arguments that `torch.nn.functional.scaled_dot_product_attention` has too mean the same here,
    with the same shapes and broadcasting. The default activation is the ReLU of Rectified Linear
    Attention; the normalisation that belongs to ReLA works on the concatenated heads and is a
    separate layer (`relakit.GatedRMSNorm`).

    A query whose keys are all masked gets an output of exactly 0, with every activation.

    Args:
        query: ``[..., heads, queries, dim]``.
        key: ``[..., heads, keys, dim]``.
        value: ``[..., heads, keys, value dim]``.
        attn_mask: broadcasts to ``[..., heads, queries, keys]``. Boolean: True = attend. Floating
            point: added to the scores before the activation; -inf gives a weight of exactly 0. Or
            ``causal_upper_left(queries, keys)`` or ``causal_lower_right(queries, keys)`` of
            `torch.nn.attention.bias`.
        dropout_p: probability of dropping a weight. Applied whenever it is above 0: pass 0.0
            outside training.
        is_causal: query i sees the keys 0 to i.
        window: how far a query sees. One number w: keys at distances below w, which are w keys
            with ``is_causal``. Two numbers ``(before, after)``: that many keys before the one at
            the query's position, and that many after; either may be None for no limit.
            ``(None, 0)`` is causal and can be combined with a mask. A window takes no memory, and
            the native backend spends no time on keys out of sight.
        align: which key is at a query's position, for ``is_causal`` and ``window``: with
            ``"upper_left"`` key i is at query i; with ``"lower_right"`` the last key is at the
            last query, as when new queries continue the keys of a cache.
        sequence_starts: where each sequence begins and where the last one ends, for sequences
            packed one after the other instead of padded in a batch; an integer tensor ``[sequences
            + 1]``, or two if queries and keys differ. A query sees only keys of its own sequence.
        scale: factor on the scores; ``dim ** -0.5`` if None.
        enable_gqa: grouped-query attention: query's number of heads is a multiple of key's and
            value's.
        activation: ``relu``, ``softmax``, ``sparsemax``, ``entmax15``, ``gelu``, ``leaky_relu``,
            ``sigmoid`` (bias -log n) or ``softpick``.
        threshold: subtracted from the scores; a number, or a tensor with one number per head, which
            receives gradients. For ``relu``, ``gelu`` and ``leaky_relu``.
        power: the rectified score is raised to this power. For ``relu``.
        length_exponent: weights are divided by (number of valid keys) ** length_exponent. For
            ``relu``, ``gelu`` and ``leaky_relu``.
        need_weights: return ``(output, weights)`` instead of the output. The weights are the ones
            that the values were multiplied with, so after dropout.
        backend: ``"sdpa"``, ``"native"`` or ``"reference"``; None takes the one named by the
            environment variable RELAKIT_BACKEND, or else the first that can serve the call.

    Returns:
        The output ``[..., heads, queries, value dim]``; with ``need_weights=True`` also the weights
        ``[..., heads, queries, keys]``.

    Raises:
        ValueError: arguments that do not fit together, an option that has no meaning for the
            activation, or a backend that cannot serve the call.
    """
    result = None
    if window is None and sequence_starts is None and align == "upper_left":
        result = _in_extension(
            query,
            key,
            value,
            attn_mask,
            dropout_p,
            is_causal,
            scale,
            enable_gqa,
            activation,
            threshold,
            power,
            length_exponent,
            need_weights,
            False,
            backend,
        )
    if result is not None and (not need_weights or need_weights is True):
        output: Tensor | tuple[Tensor, Tensor] = result[:2] if need_weights else result
        return output
    if _is_traced(query, key, value):
        traced: Tensor | tuple[Tensor, Tensor] = handle_torch_function(
            attention,
            (query, key, value),
            query,
            key,
            value,
            attn_mask,
            dropout_p,
            is_causal,
            window=window,
            align=align,
            sequence_starts=sequence_starts,
            scale=scale,
            enable_gqa=enable_gqa,
            activation=activation,
            threshold=threshold,
            power=power,
            length_exponent=length_exponent,
            need_weights=need_weights,
            backend=backend,
        )
        return traced
    reach = reach_of(is_causal=is_causal, window=window, align=align, starts=sequence_starts)
    result = run_attention(
        AttentionCall(
            query=query,
            key=key,
            value=value,
            attn_mask=attn_mask,
            dropout_p=dropout_p,
            is_causal=is_causal,
            reach=reach,
            scale=scale,
            enable_gqa=enable_gqa,
            activation=activation,
            threshold=threshold,
            power=power,
            length_exponent=length_exponent,
            need_weights=are_weights_wanted(need_weights),
        ),
        backend,
    )
    if not need_weights:
        return result.output
    assert result.weights is not None, "a backend served need_weights=True without weights"
    return result.output, result.weights


def attention_details(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    window: Window = None,
    align: Alignment = "upper_left",
    sequence_starts: SequenceStarts = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    activation: ActivationName = "relu",
    threshold: float | Tensor = 0.0,
    power: float = 1.0,
    length_exponent: float = 0.0,
    weights: Literal["dense", "csr"] | None = None,
    statistics: bool = True,
    backend: BackendName | None = None,
) -> AttentionResult:
    """`relakit.attention`, plus facts about its weights from the same pass.

    The arguments are the same as for `relakit.attention`, except for these two:

    Args:
        weights: ``"dense"`` for a tensor ``[..., heads, queries, keys]``; ``"csr"`` for one matrix
            ``[... * heads * queries, keys]`` in PyTorch's compressed sparse row format, which takes
            memory only for weights that are not zero.
        statistics: for each query and head, how many weights are not zero, and their sum.

    Returns:
        ``AttentionResult(output, weights, statistics)``, with None for what was not asked for.
    """
    if weights not in (None, "dense", "csr"):
        raise ValueError(f"weights must be 'dense', 'csr' or None, got {weights!r}")
    result = None
    if window is None and sequence_starts is None and align == "upper_left":
        result = _in_extension(
            query,
            key,
            value,
            attn_mask,
            dropout_p,
            is_causal,
            scale,
            enable_gqa,
            activation,
            threshold,
            power,
            length_exponent,
            weights,
            statistics,
            backend,
        )
    if result is not None:
        return native_result(result, query.dtype)
    call = AttentionCall(
        query=query,
        key=key,
        value=value,
        attn_mask=attn_mask,
        dropout_p=dropout_p,
        is_causal=is_causal,
        reach=reach_of(is_causal=is_causal, window=window, align=align, starts=sequence_starts),
        scale=scale,
        enable_gqa=enable_gqa,
        activation=activation,
        threshold=threshold,
        power=power,
        length_exponent=length_exponent,
        need_weights="csr" if weights == "csr" else weights == "dense",
        need_statistics=bool(statistics),
    )
    return run_attention(call, backend)


def _in_extension(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    activation: ActivationName,
    threshold: float | Tensor,
    power: float,
    length_exponent: float,
    weights: bool | Literal["dense", "csr"] | None,
    statistics: bool,
    backend: BackendName | None,
) -> Any:
    """The extension's result; None if it does not serve the call, or calls are being recorded.

    Most calls end here. There is no `AttentionCall` yet: making one takes as long as a short call.
    """
    if activation != "relu" or length_exponent != 0 or is_dynamo_compiling() or is_recording():
        return None
    extension = connected_extension()
    if extension is None:
        return None
    return extension.attention(
        query,
        key,
        value,
        attn_mask,
        dropout_p,
        is_causal,
        scale,
        enable_gqa,
        threshold,
        power,
        weights,
        statistics,
        backend,
        None,
        None,
    )


def are_weights_wanted(need_weights: object) -> bool:
    """``need_weights`` as a bool; ValueError for a format name, which the extension would take."""
    if isinstance(need_weights, str):
        raise ValueError(
            f"need_weights must be True or False, got {need_weights!r}; relakit.attention_details "
            "takes weights='dense' or 'csr'"
        )
    return bool(need_weights)


def _is_traced(*inputs: object) -> bool:
    """Whether an input stands for a future tensor, like the proxies of `torch.fx.symbolic_trace`.

    Such an object records the call as a whole, as it does for torch's own functions. This does not
    apply to subclasses of Tensor: they see the operations that the function consists of.
    """
    return not all(isinstance(x, Tensor) for x in inputs) and has_torch_function(inputs)


def run_attention(call: AttentionCall, backend: BackendName | None) -> AttentionResult:
    """Check a call, run it on a backend, and report it to `relakit.capture`."""
    for name in ("query", "key", "value"):
        check_tensor(name, getattr(call, name))
    query, key, value = follow_autocast(call.query, call.key, call.value)
    call = replace(call, query=query, key=key, value=value)
    if call.attn_mask is not None and not call.is_causal:
        call = _with_causal_pattern(call)
    check_call(call)
    if call.reach is not None:  # which includes causality
        call = replace(call, is_causal=False)
    result = choose_backend(call, backend).run(call)
    report(call)
    return result


def _with_causal_pattern(call: AttentionCall) -> AttentionCall:
    """The call with a ``CausalBias`` mask, if it has one, turned into ``is_causal`` or a reach."""
    pattern = causal_pattern(call.attn_mask)
    if pattern is None:
        return call
    pattern.check_sizes(call.query.size(-2), call.key.size(-2))
    reach = call.reach or Reach()
    if reach.is_packed:
        raise ValueError(
            "attn_mask is a causal mask for one sequence, and sequence_starts name several; leave "
            "it out, and pass is_causal=True and align='upper_left' or 'lower_right'"
        )
    if pattern.is_plain and call.reach is None:
        return replace(call, attn_mask=None, is_causal=True)
    if reach.is_lower_right and not pattern.is_lower_right:
        raise ValueError("attn_mask is causal_upper_left(...), and align is 'lower_right'")
    # The mask determines the alignment of queries and keys, for a window too.
    reach = reach._replace(after=0, is_lower_right=pattern.is_lower_right)
    return replace(call, attn_mask=None, reach=reach)

"""The attention function."""

from typing import Literal, overload

from torch.compiler import is_dynamo_compiling

from relakit.ops.backends import choose_backend
from relakit.ops.call import AttentionCall, AttentionResult, check_call, check_tensor
from relakit.ops.listeners import is_recording, report
from relakit.ops.native.usual import usual_attention
from relakit.ops.precision import follow_autocast
from torch import Tensor


@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    activation: str = "relu",
    threshold: float | Tensor = 0.0,
    power: float = 1.0,
    length_exponent: float = 0.0,
    need_weights: Literal[False] = False,
    backend: str | None = None,
) -> Tensor: ...


@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    activation: str = "relu",
    threshold: float | Tensor = 0.0,
    power: float = 1.0,
    length_exponent: float = 0.0,
    need_weights: Literal[True],
    backend: str | None = None,
) -> tuple[Tensor, Tensor]: ...


@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    activation: str = "relu",
    threshold: float | Tensor = 0.0,
    power: float = 1.0,
    length_exponent: float = 0.0,
    need_weights: bool = False,
    backend: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    activation: str = "relu",
    threshold: float | Tensor = 0.0,
    power: float = 1.0,
    length_exponent: float = 0.0,
    need_weights: bool = False,
    backend: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Attention with a choice of activation: ``f(scale * Q K^T + bias) V``.

    The arguments up to ``enable_gqa`` mean what they mean in
    `torch.nn.functional.scaled_dot_product_attention`, with the same shapes and broadcasting. The
    default activation is the ReLU of Rectified Linear Attention; the normalisation that belongs to
    ReLA works on the concatenated heads and is a layer of its own (`relakit.GatedRMSNorm`).

    A query whose keys are all masked gets an output of exactly 0, with every activation.

    Args:
        query: ``[..., heads, queries, dim]``.
        key: ``[..., heads, keys, dim]``.
        value: ``[..., heads, keys, value dim]``.
        attn_mask: broadcasts to ``[..., heads, queries, keys]``. Boolean: True = attend. Floating
            point: added to the scores before the activation; -inf gives a weight of exactly 0.
        dropout_p: probability of dropping a weight. Applied whenever it is above 0: pass 0.0
            outside training.
        is_causal: query i sees the keys 0 to i.
        scale: factor on the scores; ``dim ** -0.5`` if None.
        enable_gqa: grouped-query attention: the heads of key and value divide those of query.
        activation: ``relu``, ``softmax``, ``sparsemax``, ``entmax15``, ``gelu``, ``leaky_relu``,
            ``sigmoid`` (bias -log n) or ``softpick``.
        threshold: subtracted from the scores; a number, or a tensor with one number per head, into
            which gradients flow. For ``relu``, ``gelu`` and ``leaky_relu``.
        power: the rectified score is raised to it. For ``relu``.
        length_exponent: weights are divided by (number of valid keys) ** length_exponent. For
            ``relu``, ``gelu`` and ``leaky_relu``.
        need_weights: return ``(output, weights)`` instead of the output. The weights are those
            that met the values, that is after dropout.
        backend: ``"sdpa"``, ``"native"`` or ``"reference"``; None takes the one that
            RELAKIT_BACKEND in the environment names, or else the first that can serve the call.

    Returns:
        The output ``[..., heads, queries, value dim]``; with ``need_weights=True`` also the weights
        ``[..., heads, queries, keys]``.

    Raises:
        ValueError: arguments that do not fit together, an option that has no meaning for the
            activation, or a backend that cannot serve the call.
    """
    if (
        not is_dynamo_compiling()  # it could not look into the extension
        and activation == "relu"
        and dropout_p == 0
        and length_exponent == 0
        and not (enable_gqa or need_weights or is_recording())
        and (backend is None or backend == "native")
    ):
        output = usual_attention(
            query, key, value, attn_mask, is_causal, scale, threshold, power, backend
        )
        if output is not None:
            return output
    check_tensor("query", query)
    check_tensor("key", key)
    check_tensor("value", value)
    query, key, value = follow_autocast(query, key, value)
    call = AttentionCall(
        query=query,
        key=key,
        value=value,
        attn_mask=attn_mask,
        dropout_p=dropout_p,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
        activation=activation,
        threshold=threshold,
        power=power,
        length_exponent=length_exponent,
        need_weights=need_weights,
    )
    result = run_attention(call, backend)
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
    scale: float | None = None,
    enable_gqa: bool = False,
    activation: str = "relu",
    threshold: float | Tensor = 0.0,
    power: float = 1.0,
    length_exponent: float = 0.0,
    weights: Literal["dense", "csr"] | None = None,
    statistics: bool = True,
    backend: str | None = None,
) -> AttentionResult:
    """`relakit.attention`, together with facts about its weights, from the same pass over them.

    The arguments are those of `relakit.attention`, but for these two:

    Args:
        weights: ``"dense"`` for a tensor ``[..., heads, queries, keys]``; ``"csr"`` for PyTorch's
            compressed sparse rows, which take memory for weights that are not zero, in one matrix
            ``[... * heads * queries, keys]``.
        statistics: for each query and head, how many weights are not zero, and their sum.

    Returns:
        ``AttentionResult(output, weights, statistics)``, with None for what is not wanted.
    """
    if weights not in (None, "dense", "csr"):
        raise ValueError(f"weights must be 'dense', 'csr' or None, got {weights!r}")
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_tensor(name, tensor)
    query, key, value = follow_autocast(query, key, value)
    call = AttentionCall(
        query=query,
        key=key,
        value=value,
        attn_mask=attn_mask,
        dropout_p=dropout_p,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
        activation=activation,
        threshold=threshold,
        power=power,
        length_exponent=length_exponent,
        need_weights="csr" if weights == "csr" else weights == "dense",
        need_statistics=statistics,
    )
    return run_attention(call, backend)


def run_attention(call: AttentionCall, backend: str | None) -> AttentionResult:
    """Check the call, run it on a backend, and let `relakit.capture` know of it."""
    check_call(call)
    result = choose_backend(call, backend).run(call)
    report(call)
    return result

"""Attention and norm in one step, for modules: ``[batch, positions, features]`` in and out."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.compiler import is_dynamo_compiling

from relakit.nn.norms import GatedRMSNorm, RMSNorm
from relakit.nn.variants import AttentionSpec
from relakit.ops.attention import are_weights_wanted, attention, run_attention
from relakit.ops.backends import BackendName
from relakit.ops.call import AttentionCall
from relakit.ops.listeners import is_recording
from relakit.ops.native.connection import connected_extension
from relakit.ops.native.layout import heads_inside, split_projections
from relakit.ops.reach import Reach
from relakit.ops.torch_private import has_hooks


class Mixed(NamedTuple):
    """The result of attention and norm."""

    output: Tensor
    """``[batch, queries, heads * head dim]``, or with positions first"""
    weights: Tensor | None
    """``[batch, heads, queries, keys]``"""


def attend_and_normalise(
    projections: Sequence[Tensor],
    *,
    heads: int,
    spec: AttentionSpec,
    threshold: float | Tensor,
    norm: nn.Module | None,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    positions: int = 1,
    need_weights: bool = False,
    backend: BackendName | None = None,
    reach: Reach | None = None,
) -> Mixed:
    """Attention over heads that lie side by side, then the norm.

    The C++ extension does both in one step and moves no head in memory. If it cannot, or if
    something has to see the two steps, they run one after the other.

    Args:
        projections: ``[batch, positions, features]``: one that holds query, key and value, with
            ``3 * heads * head dim`` features; or two, for the query and for key and value together;
            or three. Unless there is only one, keys and values may have fewer heads, which query
            heads share.
        heads: number of query heads.
        spec: the kind of attention.
        threshold: its threshold: a number or a parameter.
        norm: its norm, or None.
        attn_mask: broadcasts to ``[batch, heads, queries, keys]``, in the convention of SDPA.
        dropout_p: probability of dropping a weight.
        is_causal: query i sees the keys 0 to i.
        positions: which dimension holds the positions: 1, or 0 for ``[positions, batch, ...]``.
        need_weights: return the weights too.
        backend: as for `relakit.attention`.
        reach: which keys a query sees by its position, causality included; then ``is_causal`` is
            False.
    """
    mixed = in_one_step(
        tuple(projections),
        heads,
        positions,
        attn_mask,
        dropout_p,
        is_causal,
        threshold,
        spec,
        need_weights,
        backend,
        norm,
        reach,
    )
    if mixed is not None:
        return mixed
    query, key, value = split_projections(projections, heads, positions)
    return attend_in_steps(
        query,
        key,
        value,
        spec=spec,
        threshold=threshold,
        norm=norm,
        attn_mask=attn_mask,
        dropout_p=dropout_p,
        is_causal=is_causal,
        positions=positions,
        need_weights=need_weights,
        backend=backend,
        reach=reach,
    )


def attend_in_steps(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    spec: AttentionSpec,
    threshold: float | Tensor,
    norm: nn.Module | None,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    positions: int = 1,
    need_weights: bool = False,
    backend: BackendName | None = None,
    reach: Reach | None = None,
) -> Mixed:
    """Attention over heads in a separate dimension, then the norm, one after the other.

    Args:
        query: ``[batch, heads, queries, head dim]``.
        key: ``[batch, key heads, keys, head dim]``; the number of heads divides the query's.
        value: ``[batch, value heads, keys, value dim]``; the number of heads divides the query's.
        scale: factor on the scores; ``dim ** -0.5`` if None.

    The other arguments are the same as for `attend_and_normalise`.
    """
    dtype = query.dtype
    if norm is not None and dtype == torch.float16:
        # ReLU weights have no upper bound, and for a nearly null row the norm multiplies gradients
        # by up to 1e4: float16 between attention and norm would overflow.
        query, key, value = query.float(), key.float(), value.float()
        if isinstance(attn_mask, Tensor) and attn_mask.dtype == torch.float16:
            attn_mask = attn_mask.float()
    if reach is None:  # the function has the shortest path to the kernels
        result = attention(
            query,
            key,
            value,
            attn_mask,
            dropout_p,
            is_causal,
            scale=scale,
            enable_gqa=not query.size(1) == key.size(1) == value.size(1),
            activation=spec.activation,
            threshold=threshold,
            power=spec.power,
            length_exponent=spec.length_exponent,
            need_weights=need_weights,
            backend=backend,
        )
        output, weights = result if isinstance(result, tuple) else (result, None)
    else:
        call = AttentionCall(
            query=query,
            key=key,
            value=value,
            attn_mask=attn_mask,
            dropout_p=dropout_p,
            is_causal=is_causal,
            scale=scale,
            enable_gqa=not query.size(1) == key.size(1) == value.size(1),
            activation=spec.activation,
            threshold=threshold,
            power=spec.power,
            length_exponent=spec.length_exponent,
            need_weights=are_weights_wanted(need_weights),
            reach=reach,
        )
        output, weights, _ = run_attention(call, backend)
    normalised = _normalised(heads_inside(output, positions), norm).to(dtype)
    return Mixed(normalised, None if weights is None else weights.to(dtype))


def in_one_step(
    projections: tuple[Tensor, ...],
    heads: int,
    positions: int,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    threshold: float | Tensor,
    spec: AttentionSpec,
    need_weights: object,
    backend: BackendName | None,
    norm: nn.Module | None,
    reach: Reach | None,
) -> Mixed | None:
    """Attention and norm by the extension; None if it cannot do all of it."""
    if not may_be_one_step(spec, norm, backend):
        return None
    if isinstance(need_weights, str):  # a format name; the next step says what is wrong
        return None
    extension = connected_extension()
    if extension is None:
        return None
    gain: Tensor | None = None
    gate: Tensor | None = None
    eps = 0.0
    if isinstance(norm, RMSNorm):
        gain, eps = norm.weight, norm.eps
        gate = norm.gate if isinstance(norm, GatedRMSNorm) else None
    result = extension.multihead_attention(
        projections,
        heads,
        positions,
        attn_mask,
        dropout_p,
        is_causal,
        threshold,
        spec.power,
        need_weights,
        backend,
        gain,
        gate,
        eps,
        reach,
    )
    if result is None:
        return None
    return Mixed(*result[:2]) if need_weights else Mixed(result, None)


def may_be_one_step(
    spec: AttentionSpec, norm: nn.Module | None, backend: BackendName | None
) -> bool:
    """Whether `in_one_step` is worth trying, as far as is known before there are projections."""
    if spec.activation != "relu" or spec.length_exponent != 0:
        return False
    if backend not in (None, "native") or is_dynamo_compiling() or is_recording():
        return False
    if norm is None:
        return True
    return (type(norm) is GatedRMSNorm or type(norm) is RMSNorm) and not has_hooks(norm)


def _normalised(heads: Tensor, norm: nn.Module | None) -> Tensor:
    """Normalise ``[..., heads, head dim]`` to ``[..., heads * head dim]``."""
    if norm is None:
        return heads.flatten(-2)
    normalised: Tensor
    if type(norm).forward is not RMSNorm.forward:
        normalised = norm(heads.flatten(-2))
    elif has_hooks(norm):  # hooks get one vector, too
        normalised = norm(heads.flatten(-2), heads=heads.size(-2))
    else:  # reads heads in place, without a copy
        normalised = norm(heads, heads_apart=True)
    return normalised

"""Attention and norm in one step, for modules: ``[batch, positions, features]`` in and out."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.compiler import is_dynamo_compiling

from relakit.nn.norms import GatedRMSNorm, RMSNorm
from relakit.nn.variants import AttentionSpec
from relakit.ops.backends import BackendName
from relakit.ops.listeners import is_recording
from relakit.ops.native.connection import connected_extension
from relakit.ops.torch_private import has_hooks


def multihead_in_extension(
    projections: Sequence[Tensor],
    *,
    heads: int,
    positions: int,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    spec: AttentionSpec,
    threshold: float | Tensor,
    norm: nn.Module | None,
    need_weights: bool,
    backend: BackendName | None,
) -> tuple[Tensor, Tensor | None] | None:
    """Attention over heads side by side in a projection, then the norm; no head moves in memory.

    Args:
        projections: ``[batch, positions, features]``: one that holds query, key and value, of ``3 *
            heads * head dim`` features; or the query's, and one of key and value; or three.
        heads: number of heads.
        positions: dimension of the positions: 1, or 0 for ``[positions, batch, ...]``.
        attn_mask: broadcasts to ``[batch, heads, queries, keys]``, in the convention of SDPA.
        dropout_p: probability of dropping a weight.
        is_causal: query i sees the keys 0 to i.
        spec: the kind of attention.
        threshold: its threshold: a number or a parameter.
        norm: its norm, or None.
        need_weights: return the weights too.
        backend: as for `relakit.attention`.

    Returns:
        The output ``[batch, queries, heads * head dim]`` (or with positions first), and the weights
        or None. None instead of both if the extension cannot do all of it, or if something has to
        see its parts.
    """
    if (
        spec.activation != "relu"
        or spec.length_exponent != 0
        or is_dynamo_compiling()
        or is_recording()
    ):
        return None
    gain: Tensor | None = None
    gate: Tensor | None = None
    eps = 0.0
    if norm is not None:
        if type(norm) is GatedRMSNorm:
            gate = norm.gate
        elif type(norm) is not RMSNorm:
            return None
        if has_hooks(norm):
            return None
        gain, eps = norm.weight, norm.eps
    extension = connected_extension()
    if extension is None:
        return None
    result = extension.multihead_attention(
        tuple(projections),
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
    )
    if result is None:
        return None
    return result[:2] if need_weights else (result, None)


def normalise_heads(heads: Tensor, norm: nn.Module | None) -> Tensor:
    """``[..., heads, head dim]`` to ``[..., heads * head dim]``, normalised if there is a norm."""
    if isinstance(norm, RMSNorm):  # ours reads heads where they are, without a copy
        normalised: Tensor = norm(heads, heads_apart=True)
        return normalised
    mixed = heads.flatten(-2)
    return mixed if norm is None else norm(mixed)

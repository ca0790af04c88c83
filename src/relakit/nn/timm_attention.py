"""Conversion of the attention in timm's vision transformers.

Three classes of timm 1.0 differ only in their projections and arguments. The module that replaces
one of them keeps its parts under the same names, and adds a ``core``.
"""

from importlib import import_module
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relakit.nn.adapters import Adapter, taken_over
from relakit.nn.core import AttentionCore
from relakit.nn.fx_leaf import make_leaf
from relakit.nn.variants import AttentionSpec


class TimmRotaryAttention(nn.Module):
    """Replaces `timm.layers.AttentionRope` and EVA's attention."""

    attention: AttentionSpec
    core: AttentionCore
    num_heads: int

    def forward(
        self,
        x: Tensor,
        rope: Tensor | None = None,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """``[batch, positions, dim]`` in and out."""
        parts: Any = self  # the attributes are timm's
        query, key, value = (self._heads(y) for y in self._projections(x))
        query, key = parts.q_norm(query), parts.k_norm(key)
        if rope is not None:
            query, key = (self._rotated(y, rope).type_as(value) for y in (query, key))
        # Not called as a module, so that `relakit.capture` records it under this module's name.
        mixed = self.core.forward(
            query,
            key,
            value,
            attn_mask,
            parts.attn_drop.p if self.training else 0.0,
            is_causal,
            scale=parts.scale,
        )
        mixed = parts.norm(mixed)
        if getattr(parts, "gate", None) is not None:
            mixed = mixed * parts.gate(x).sigmoid()
        output: Tensor = parts.proj_drop(parts.proj(mixed))
        return output

    def _heads(self, y: Tensor) -> Tensor:
        """``[batch, heads, positions, head dim]``"""
        head_dim = self.core.head_dim
        batch, positions, features = y.shape
        return y.reshape(batch, positions, features // head_dim, head_dim).transpose(1, 2)

    def _projections(self, x: Tensor) -> tuple[Tensor, ...]:
        parts: Any = self
        if parts.qkv is None:
            return parts.q_proj(x), parts.k_proj(x), parts.v_proj(x)
        if getattr(parts, "q_bias", None) is None:
            return tuple(parts.qkv(x).chunk(3, -1))
        bias = torch.cat((parts.q_bias, parts.k_bias, parts.v_bias))  # EVA's
        if parts.qkv_bias_separate:
            return tuple((parts.qkv(x) + bias).chunk(3, -1))
        return F.linear(x, parts.qkv.weight, bias).chunk(3, -1)

    def _rotated(self, y: Tensor, rope: Tensor) -> Tensor:
        """Apply rotary positions to all tokens except those that come before the image."""
        parts: Any = self
        first = parts.num_prefix_tokens
        rotate = import_module("timm.layers").apply_rot_embed_cat
        half = getattr(parts, "rotate_half", False)
        return torch.cat([y[:, :, :first], rotate(y[:, :, first:], rope, half=half)], 2)


class TimmAttention(TimmRotaryAttention):
    """Replaces `timm.layers.Attention`, and takes the same arguments."""

    def forward(  # type: ignore[override]
        self, x: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        return super().forward(x, None, attn_mask, is_causal)


_TIMM_CLASSES: Final[dict[str, type[TimmRotaryAttention]]] = {
    "timm.layers.attention.Attention": TimmAttention,
    "timm.layers.attention.AttentionRope": TimmRotaryAttention,
    "timm.models.eva.EvaAttention": TimmRotaryAttention,
}


def convert_timm(module: Any, spec: AttentionSpec) -> nn.Module:
    """The adapter for all of these classes, including modules that were converted before."""
    if isinstance(module, TimmRotaryAttention):
        kind, head_dim = type(module), module.core.head_dim
    else:
        name = next(n for n in _names(type(module)) if n in _TIMM_CLASSES)
        kind = _TIMM_CLASSES[name]
        # EVA does not store it, and its heads may not add up to the model's dimension.
        head_dim = module.proj.in_features // module.num_heads
    new = taken_over(module, kind)
    weight = module.proj.weight
    new.core = AttentionCore(
        module.num_heads, head_dim, spec, device=weight.device, dtype=weight.dtype
    )
    new.attention = spec
    if isinstance(module, TimmRotaryAttention):
        new.core.keep_from(module.core)
    new.core.train(module.training)
    make_leaf(new)
    return new


def _names(kind: type) -> list[str]:
    return [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__]


TIMM_ADAPTERS: Final[dict[str, Adapter]] = dict.fromkeys(
    [*_TIMM_CLASSES, *(_names(kind)[0] for kind in (TimmAttention, TimmRotaryAttention))],
    convert_timm,
)
"""By module and class name: timm may not be installed."""

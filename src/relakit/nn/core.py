"""What conversion adds to an attention module, and `AttentionCore`, which computes with it."""

import torch
from torch import Tensor, nn

from relakit.nn.arguments import check_size
from relakit.nn.fused import attend_in_steps
from relakit.nn.fx_leaf import make_leaf
from relakit.nn.norms import RMSNorm, build_norm
from relakit.nn.threshold import build_threshold, current_threshold
from relakit.nn.variants import (
    DEFAULT_ATTENTION,
    AttentionName,
    AttentionSpec,
    resolve_attention,
)
from relakit.ops.backends import BackendName, known_backend
from relakit.ops.precision import follow_autocast, without_autocast
from relakit.ops.reach import Alignment, SequenceStarts, Window, reach_of


class AttentionParts(nn.Module):
    """A kind of attention, and the parameters that belong to it.

    Args:
        attention: the kind.
        heads: number of query heads.
        dim: features of all heads together.
        device: device of the parameters.
        dtype: dtype of the parameters.
    """

    norm: RMSNorm | None
    threshold: nn.Parameter | None

    def __init__(
        self,
        attention: AttentionSpec,
        heads: int,
        dim: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.attention = attention
        norm = build_norm(attention, dim, dim // heads, device=device, dtype=dtype)
        self.register_module("norm", norm)
        threshold = build_threshold(attention, heads, device=device, dtype=dtype)
        self.register_parameter("threshold", threshold)

    def keep_from(self, old: "AttentionParts") -> None:
        """Take over the norm and the threshold of ``old`` where both attentions have the same."""
        if old.attention.has_norm_of(self.attention):
            self.norm = old.norm
        if self.threshold is not None and old.threshold is not None:
            self.threshold = old.threshold

    def extra_repr(self) -> str:
        return f"{self.attention}"


class AttentionCore(AttentionParts):
    """Attention over heads, then the norm over all of them.

    Use it to turn your own attention module into ReLA.

    It replaces `F.scaled_dot_product_attention` and the code that joins the heads::

        heads = self.core(query, key, value, is_causal=True)  # [batch, queries, heads * head dim]
        return self.output_projection(heads)

    Args:
        num_heads: number of query heads.
        head_dim: features per value head.
        attention: a name in `relakit.ATTENTIONS` or an `AttentionSpec`.
        backend: as for `relakit.attention`.
        device: device of the parameters.
        dtype: dtype of the parameters.
    """

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        attention: AttentionName | AttentionSpec = DEFAULT_ATTENTION,
        *,
        backend: BackendName | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_size("num_heads", num_heads)
        check_size("head_dim", head_dim)
        spec = resolve_attention(attention)
        super().__init__(spec, num_heads, num_heads * head_dim, device=device, dtype=dtype)
        self.backend = known_backend(backend)
        self.num_heads = num_heads
        self.head_dim = head_dim
        make_leaf(self)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        window: Window = None,
        align: Alignment = "upper_left",
        sequence_starts: SequenceStarts = None,
    ) -> Tensor:
        """``[batch, queries, heads * head dim]``; the arguments are those of `relakit.attention`.

        Query, key and value have four dimensions. Keys and values may have fewer heads, which
        groups of query heads share.
        """
        self._check_shapes(query, key, value)
        query, key, value = follow_autocast(query, key, value)
        with without_autocast(query):
            return attend_in_steps(
                query,
                key,
                value,
                spec=self.attention,
                threshold=current_threshold(self.attention, self.threshold),
                norm=self.norm,
                attn_mask=attn_mask,
                dropout_p=dropout_p,
                is_causal=is_causal,
                scale=scale,
                backend=self.backend,
                reach=reach_of(
                    is_causal=is_causal, window=window, align=align, starts=sequence_starts
                ),
            ).output

    def _check_shapes(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        for name, tensor in (("query", query), ("key", key), ("value", value)):
            if tensor.dim() != 4:
                raise ValueError(
                    f"{name} must be [batch, heads, positions, head dim], got shape "
                    f"{tuple(tensor.shape)}"
                )
        if (query.size(1), value.size(3)) != (self.num_heads, self.head_dim):
            raise ValueError(
                f"the module has num_heads={self.num_heads} and head_dim={self.head_dim}, but "
                f"query has {query.size(1)} heads and value {value.size(3)} features per head"
            )

    def extra_repr(self) -> str:
        return f"num_heads={self.num_heads}, attention={self.attention}"

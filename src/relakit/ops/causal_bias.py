"""`torch.nn.attention.bias`: causal masks that PyTorch passes around without making them."""

import sys
from typing import Any, NamedTuple

import torch
from torch import Tensor


class CausalPattern(NamedTuple):
    """Which causal mask a ``CausalBias`` stands for."""

    is_top_left: bool
    """Query i sees the keys 0 to i. Otherwise the last query sees all keys."""
    queries: int
    keys: int

    @property
    def is_plain(self) -> bool:
        """Whether ``is_causal=True`` says the same."""
        return self.is_top_left or self.queries == self.keys

    def visible(self, device: torch.device) -> Tensor:
        """``[queries, keys]``, True = attend."""
        offset = 0 if self.is_top_left else self.keys - self.queries
        ones = torch.ones(self.queries, self.keys, dtype=torch.bool, device=device)
        return ones.tril(offset)

    def check_sizes(self, queries: int, keys: int) -> None:
        """Raise ValueError if it was made for other numbers of queries and keys."""
        if (self.queries, self.keys) != (queries, keys):
            name = "causal_upper_left" if self.is_top_left else "causal_lower_right"
            raise ValueError(
                f"attn_mask is {name}{(self.queries, self.keys)}, made for {self.queries} queries "
                f"and {self.keys} keys, got {queries} and {keys}; make it with {name}"
                f"{(queries, keys)}"
            )


def causal_pattern(mask: object) -> CausalPattern | None:
    """What the result of ``causal_upper_left`` or ``causal_lower_right`` stands for; else None.

    Such a mask is a tensor, but its numbers are not the mask: they are whatever the memory held.
    """
    if mask is None or type(mask) is Tensor:
        return None
    # Importing it takes a second, and whoever has such a mask has imported it.
    bias: Any = sys.modules.get("torch.nn.attention.bias")
    if bias is None or not isinstance(mask, bias.CausalBias):
        return None
    is_top_left = mask.variant == bias.CausalVariant.UPPER_LEFT
    return CausalPattern(is_top_left, mask.seq_len_q, mask.seq_len_kv)

"""`torch.nn.attention.bias`: causal masks that PyTorch passes around without creating them."""

import sys
from typing import Any, NamedTuple

from torch import Tensor

from relakit.ops.reach import Reach


class CausalPattern(NamedTuple):
    """Which causal mask a ``CausalBias`` stands for."""

    is_lower_right: bool
    """The last query sees all keys. Otherwise query i sees the keys 0 to i."""
    queries: int
    keys: int

    @property
    def is_plain(self) -> bool:
        """Whether ``is_causal=True`` means the same."""
        return not self.is_lower_right or self.queries == self.keys

    @property
    def reach(self) -> Reach:
        """Which keys a query sees with this mask."""
        return Reach(after=0, is_lower_right=self.is_lower_right)

    def check_sizes(self, queries: int, keys: int) -> None:
        """Raise ValueError if the mask was made for different numbers of queries and keys."""
        if (self.queries, self.keys) != (queries, keys):
            name = "causal_lower_right" if self.is_lower_right else "causal_upper_left"
            raise ValueError(
                f"attn_mask is {name}{(self.queries, self.keys)}, made for {self.queries} queries "
                f"and {self.keys} keys, got {queries} and {keys}; make it with {name}"
                f"{(queries, keys)}"
            )


def causal_pattern(mask: object) -> CausalPattern | None:
    """What a ``causal_upper_left`` or ``causal_lower_right`` stands for; None for other masks.

    Such a mask is a tensor, but its values are not the mask: they are whatever the memory held.
    """
    if mask is None or type(mask) is Tensor:
        return None
    # Not imported here: that takes a second, and whoever has such a mask has imported it already.
    bias: Any = sys.modules.get("torch.nn.attention.bias")
    if bias is None or not isinstance(mask, bias.CausalBias):
        return None
    is_lower_right = mask.variant == bias.CausalVariant.LOWER_RIGHT
    return CausalPattern(is_lower_right, mask.seq_len_q, mask.seq_len_kv)

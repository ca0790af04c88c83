"""Rates by layer and head, kept as ratios of sums that can be added up over batches."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from relakit.analysis.results import HeadValues, LayerValues
from relakit.broken_model import BrokenModelError


class Share(NamedTuple):
    """``part`` out of ``whole``: tensors of the same shape."""

    part: Tensor
    whole: Tensor

    def rate(self) -> Tensor:
        """part / whole; NaN where nothing was counted."""
        return self.part / self.whole


class ShareTotal:
    """Shares summed in float64 for each layer, such as over all batches."""

    def __init__(self, *shape: int) -> None:
        self.part = torch.zeros(shape, dtype=torch.float64)
        self.whole = torch.zeros(shape, dtype=torch.float64)

    def add(self, share: Share, layer: int) -> None:
        """Add to the totals of one layer, the first dimension."""
        self.part[layer] += share.part
        self.whole[layer] += share.whole

    def rates(self) -> Tensor:
        """part / whole; NaN where nothing was counted.

        Raises:
            ValueError: a share that was added is NaN or infinite.
        """
        check_numbers(self.part.flatten().tolist())
        check_numbers(self.whole.flatten().tolist())
        return self.part / self.whole


def check_numbers(sums: Iterable[float]) -> None:
    """Raise BrokenModelError if any of the sums is NaN or infinite."""
    if not all(map(math.isfinite, sums)):
        raise BrokenModelError


def head_values(rates: Tensor) -> HeadValues:
    """Convert ``[layers, heads]`` rates, which are NaN where nothing was counted."""
    return tuple(layer_values(layer) for layer in rates)


def layer_values(rates: Tensor) -> LayerValues:
    """Convert ``[layers]`` rates, which are NaN where nothing was counted."""
    nothing = torch.isnan(rates).tolist()
    return tuple(None if no else rate for no, rate in zip(nothing, rates.tolist(), strict=True))


def by_head(weights: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
    """Reshape both to ``[batch, heads, queries, keys]``; valid may have one head for all."""
    if weights.dim() < 3:
        raise ValueError(
            "weights must have at least 3 dimensions [..., heads, queries, keys], "
            f"got shape {tuple(weights.shape)}"
        )
    if valid is None:
        valid = torch.ones(1, 1, 1, dtype=torch.bool, device=weights.device)
    *lead, _, queries, keys = weights.shape
    valid_heads = valid.size(-3) if valid.dim() > 2 else 1  # most masks are the same for all heads
    valid = valid.expand(*lead, valid_heads, queries, keys)
    return weights.reshape(-1, *weights.shape[-3:]), valid.reshape(-1, *valid.shape[-3:])

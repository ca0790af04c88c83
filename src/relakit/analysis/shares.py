"""A share of something, as the two numbers whose ratio it is: they can be added up."""

from typing import NamedTuple

import torch
from torch import Tensor


class Share(NamedTuple):
    """``part`` of ``whole``: tensors of one shape."""

    part: Tensor
    whole: Tensor

    def rate(self) -> Tensor:
        """part / whole; NaN where there is nothing."""
        return self.part / self.whole


class ShareTotal:
    """Shares added up in float64, such as those of one layer over all batches."""

    def __init__(self, *shape: int) -> None:
        self.part = torch.zeros(shape, dtype=torch.float64)
        self.whole = torch.zeros(shape, dtype=torch.float64)

    def add(self, share: Share, layer: int) -> None:
        """Add to the totals of one layer, the first dimension."""
        self.part[layer] += share.part
        self.whole[layer] += share.whole

    def rates(self) -> Tensor:
        """NaN where nothing was counted.

        Raises:
            ValueError: something that was added is no number.
        """
        if not bool(self.part.isfinite().all() and self.whole.isfinite().all()):
            raise ValueError(
                "attention weights must be numbers, got NaN or infinity: the model is broken"
            )
        return self.part / self.whole

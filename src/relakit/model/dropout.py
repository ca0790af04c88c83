"""Dropout that is cheap on a CPU."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """Dropout whose random numbers cost a fraction of `nn.Dropout`'s on a CPU.

    There, PyTorch draws 32 random bits for each element, one after the other; this class splits 64
    bits into four. The probability is rounded to a multiple of 2^-16.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Zero a share of the elements and scale up the others, in training."""
        if not self.training or self.probability == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.probability)
        steps = round(self.probability * 2**16)
        bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        kept = bits.view(torch.int16)[: x.numel()].view(x.shape) >= steps - 2**15
        return x * kept.to(x.dtype).mul_(2**16 / (2**16 - steps))

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"{self.probability}"

"""Weights of one byte, as the documentation of `NativeEngine` describes them, in plain PyTorch."""

import copy

import torch
from native_extension import NATIVE
from torch import Tensor, nn

from relakit.model import Transformer


def adds_in_16_bits(isa: str) -> bool:
    """Whether weights must be small enough for sums of 16 bits."""
    return isa == "avx2" and not NATIVE.cpu_features()["avx_vnni"]


def most_in_one_sum(weight: Tensor) -> Tensor:
    """The largest sum of weights of one sign, rounded, that are added in 16 bits: ``[outputs, 1]``.

    Of eight inputs in a row these are 0, 1, 4 and 5, and 2, 3, 6 and 7.
    """
    rows = torch.nn.functional.pad(weight.round(), (0, -weight.size(1) % 8))
    eights = rows.view(rows.size(0), -1, 2, 2, 2)
    positive, negative = (x.clamp_min(0).sum((2, 4)).flatten(1).amax(1) for x in (eights, -eights))
    return torch.maximum(positive, negative)[:, None]


class ByteLinear(nn.Module):
    """A linear layer whose weights and inputs are rounded to bytes."""

    def __init__(self, weight: Tensor, bias: Tensor | None, isa: str) -> None:
        super().__init__()
        factor = 127 / weight.abs().amax(1, keepdim=True)
        if adds_in_16_bits(isa):
            while bool((too_large := most_in_one_sum(weight * factor) / 128).gt(1).any()):
                factor = factor / too_large.clamp_min(1)
        self.weight_bytes = (weight * factor).round()
        self.scale = 1 / factor.t()
        self.bias = 0.0 if bias is None else bias

    def forward(self, x: Tensor) -> Tensor:
        largest = x.abs().amax(-1, keepdim=True).clamp_min(1e-30)
        x_bytes = (x * (127 / largest) + 0.5).floor()
        return (x_bytes @ self.weight_bytes.t()) * (largest / 127 * self.scale) + self.bias


def in_bytes(model: Transformer, isa: str) -> Transformer:
    """Its linear layers replaced; the three of self-attention read the same rows as the one."""
    model = copy.deepcopy(model)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, ByteLinear(child.weight.detach(), child.bias.detach(), isa))
    return model

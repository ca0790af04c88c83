"""What is subtracted from the scores: the spec's number, or a parameter for each head."""

import torch
from torch import Tensor, nn

from relakit.nn.variants import AttentionSpec


def build_threshold(
    spec: AttentionSpec,
    heads: int,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> nn.Parameter | None:
    """A learned threshold for each head, starting at 0; None if the spec has a number."""
    if spec.threshold != "learned":
        return None
    return nn.Parameter(torch.zeros(heads, device=device, dtype=dtype))


def current_threshold(spec: AttentionSpec, learned: Tensor | None) -> float | Tensor:
    """The spec's number, or the parameter that `build_threshold` created."""
    if learned is not None:
        return learned
    assert not isinstance(spec.threshold, str)  # "learned" is the parameter above
    return spec.threshold

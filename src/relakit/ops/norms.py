"""Normalisation of the attention output: equations 4 and 5 of the paper, and LayerNorm.

Half-precision input is normalised in float32 and returned in its own dtype. The modules that hold
the parameters are in `relakit.nn.norms`.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from relakit.ops.options import DEFAULT_EPS
from relakit.ops.precision import wide


def rms_norm(z: Tensor, gain: Tensor, *, eps: float = DEFAULT_EPS) -> Tensor:
    """Eq. 4: ``z / RMS(z) * gain`` over the last dimension. A zero vector stays zero."""
    z_wide = wide(z)
    scale = torch.rsqrt(z_wide.square().mean(-1, keepdim=True) + eps)
    return (z_wide * scale * gain).to(z.dtype)


def gated(z: Tensor, norm: Callable[[Tensor], Tensor], gate: Tensor) -> Tensor:
    """Eq. 5: ``sigmoid(gate * z) * norm(z)``."""
    z_wide = wide(z)
    return (torch.sigmoid(z_wide * gate) * norm(z_wide)).to(z.dtype)


def gated_rms_norm(
    z: Tensor, gain: Tensor, gate: Tensor | None, *, eps: float = DEFAULT_EPS
) -> Tensor:
    """Eq. 5 around eq. 4; without a gate, eq. 4 alone."""
    if gate is None:
        return rms_norm(z, gain, eps=eps)
    return gated(z, lambda z_wide: rms_norm(z_wide, gain, eps=eps), gate)


def layer_norm(z: Tensor, gain: Tensor, bias: Tensor, *, eps: float = DEFAULT_EPS) -> Tensor:
    """``(z - mean(z)) / std(z) * gain + bias`` over the last dimension (Ba et al., 2016)."""
    z_wide = wide(z)
    centred = z_wide - z_wide.mean(-1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    return (centred * scale * gain + bias).to(z.dtype)

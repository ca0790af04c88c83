"""Norms to test, and their results by the C++ kernels and by the formula in PyTorch."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import relakit
from relakit.ops.native import extension


def make_norm(dim: int, is_gated: bool = True, dtype: torch.dtype = torch.float32) -> nn.Module:
    norm = (relakit.GatedRMSNorm if is_gated else relakit.RMSNorm)(dim)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return norm.to(dtype)


def run(norm: nn.Module, z: Tensor, *, heads_apart: bool = False, upstream: Tensor) -> list[Tensor]:
    """Output and all gradients."""
    z = z.detach().requires_grad_()
    output = norm(z, heads_apart=heads_apart)
    return [output, *torch.autograd.grad(output, [z, *norm.parameters()], upstream)]


def run_plain(*args: Any, **kwargs: Any) -> list[Tensor]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(extension.BACKEND_VARIABLE, "reference")
        return run(*args, **kwargs)

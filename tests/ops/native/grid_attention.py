"""Attention on a coarse grid, where kernels can be compared with the reference.

Scores are exact in float32 and bfloat16 there: whether one is above its threshold does not depend
on the order of a sum, and gradients can be compared, too.
"""

import torch
from torch import Tensor

import relakit


def grid(generator: torch.Generator, *shape: int) -> Tensor:
    """Multiples of 1/4 between -1 and 1."""
    return torch.randint(-4, 5, shape, generator=generator) / 4


def run(inputs: list[Tensor], threshold: Tensor, backend: str, **options: object) -> list[Tensor]:
    """Output and the gradients of query, key, value and threshold."""
    leaves = [x.detach().requires_grad_() for x in (*inputs, threshold)]
    output = relakit.attention(*leaves[:3], threshold=leaves[3], backend=backend, **options)
    generator = torch.Generator().manual_seed(1)
    seed = grid(generator, *output.shape).to(output.dtype)
    return [output, *torch.autograd.grad(output, leaves, seed)]


def assert_same(actual: list[Tensor], expected: list[Tensor]) -> None:
    names = ("output", "query", "key", "value", "threshold")
    for name, x, y in zip(names, actual, expected, strict=True):
        # Sums of up to 200 products in another order; in bfloat16 rounded once, at the end.
        tolerance = 1e-5 if x.dtype == torch.float32 else 8e-3
        scale = max(1.0, float(y.detach().abs().max())) if y.numel() else 1.0
        torch.testing.assert_close(
            x, y, atol=tolerance * scale, rtol=0, msg=lambda m, name=name: f"{name}: {m}"
        )

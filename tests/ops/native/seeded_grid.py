"""Inputs of attention on a coarse grid, by seed: scores are exact, whatever the order of sums."""

from collections.abc import Iterable
from typing import Any

import grid_attention
import torch
from torch import Tensor

import relakit


def grid(seed: int, *shape: int) -> Tensor:
    """Multiples of 1/4 between -1 and 1."""
    return grid_attention.grid(torch.Generator().manual_seed(seed), *shape)


def inputs(
    queries: int, keys: int, dim: int = 16, value_dim: int = 24, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, ...]:
    """Query, key and value of two sequences with two heads."""
    shapes = ((2, 2, queries, dim), (2, 2, keys, dim), (2, 2, keys, value_dim))
    return tuple(grid(i, *shape).to(dtype) for i, shape in enumerate(shapes))


def with_gradients(tensors: Iterable[Tensor], **options: Any) -> list[Tensor]:
    """The output, and the gradients of query, key and value."""
    leaves = [x.detach().requires_grad_() for x in tensors]
    output = relakit.attention(*leaves, **options)
    upstream = grid(9, *output.shape).to(output.dtype)
    return [output.detach(), *torch.autograd.grad(output, leaves, upstream)]

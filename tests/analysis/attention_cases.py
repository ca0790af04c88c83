"""Random and hand-made attention weights with masks, for the tests of this folder."""

import torch
from torch import Tensor

Case = tuple[Tensor, Tensor]
"""``[batch, heads, queries, keys]`` weights, and ``[batch, 1, queries, keys]`` valid."""


def random_case(
    seed: int, *, sums_to_one: bool = False, causal: bool = False, signed: bool = False
) -> Case:
    """Padded sentences; masked keys have weight 0, rows of padding have any."""
    generator = torch.Generator().manual_seed(seed)

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=generator))

    batch, heads, queries = number(1, 5), number(1, 5), number(1, 9)
    keys = queries if causal else number(1, 9)
    scores = 3 * torch.randn(batch, heads, queries, keys, generator=generator)
    query_sizes = torch.randint(1, queries + 1, (batch,), generator=generator)
    key_sizes = torch.randint(1, keys + 1, (batch,), generator=generator)
    key_sizes = query_sizes if causal else key_sizes
    seen = (torch.arange(keys) < key_sizes[:, None])[:, None, None, :].expand_as(scores)
    if causal:
        seen = seen.tril()
    if sums_to_one:
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    else:
        weights = (scores if signed else (scores - 1).relu()).masked_fill(~seen, 0.0)
        weights[torch.rand(batch, heads, queries, generator=generator) < 0.3] = 0.0
    real = (torch.arange(queries) < query_sizes[:, None])[:, None, :, None]
    return weights, seen[:, :1] & real


def sentences(case: Case) -> list[tuple[list[list[list[float]]], list[list[bool]]]]:
    """As `slow_numbers` wants them."""
    weights, valid = case
    return [(w.double().tolist(), v[0].tolist()) for w, v in zip(weights, valid, strict=True)]

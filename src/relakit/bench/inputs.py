"""The tensors of a case: the same for every contender, and the same every time."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Final

import torch
from safetensors.torch import load_file
from torch import Tensor

from relakit.bench.cases import DEMO, DEMO_DIM, Case
from relakit.ops.call import AttentionCall
from relakit.ops.reference import reference_weights

DEMO_FILE: Final = Path(__file__).with_name("demo_heads.safetensors")
FARTHEST_THRESHOLD: Final = 10.0
"""Beyond all scores: used, with either sign, as the threshold for 0% and 100% zeros."""
CHUNK: Final = 2**22
"""How many scores are computed at a time when counting zeros."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Query ``[batch, heads, queries, dim]``, key and value ``[batch, heads, keys, dim]``."""

    query: Tensor
    key: Tensor
    value: Tensor
    grad_output: Tensor | None
    """Gradient of the output, if there is a backward pass."""
    mask: Tensor | None
    """Broadcasts to ``[batch, heads, queries, keys]``. Boolean (True = attend), or additive."""
    is_causal: bool
    threshold: float
    """Subtracted from ReLA's scores; it creates the zeros."""


def make_inputs(case: Case, seed: int = 0) -> Inputs:
    """The case's tensors.

    Standard normal queries and keys give scores that are nearly standard normal, so that a single
    threshold gives the wanted share of zeros.
    """
    generator = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, case.dtype)
    make_heads = _demo_heads if case.zeros == DEMO else _normal_heads
    query, key, value = (
        x.to(dtype).requires_grad_(case.has_backward) for x in make_heads(case, generator)
    )
    grad_output = None
    if case.has_backward:
        grad_output = torch.randn(query.shape, generator=generator).to(dtype)
    return Inputs(
        query=query,
        key=key,
        value=value,
        grad_output=grad_output,
        mask=_make_mask(case, generator),
        is_causal=case.is_causal,
        threshold=0.0 if isinstance(case.zeros, str) else threshold_for(case.zeros / 100),
    )


def threshold_for(share: float) -> float:
    """The threshold below which this share of standard normal scores lies."""
    if share <= 0 or share >= 1:
        return FARTHEST_THRESHOLD if share >= 1 else -FARTHEST_THRESHOLD
    return NormalDist().inv_cdf(share)


@torch.no_grad()
def measure_zeros(inputs: Inputs) -> float:
    """The share of ReLA's unmasked weights that are exactly 0.

    The reference computes them for a few queries at a time, so that memory does not grow with the
    square of the length.
    """
    batch, heads, queries, _ = inputs.query.shape
    keys = inputs.key.size(2)
    step = max(1, CHUNK // (heads * keys))
    zeros = counted = 0
    for sequence in range(batch):
        for first in range(0, queries, step):
            rows = slice(first, min(first + step, queries))
            call = AttentionCall(
                query=inputs.query[sequence, None, :, rows],
                key=inputs.key[sequence, None],
                value=inputs.value[sequence, None],
                attn_mask=_mask_of_rows(inputs, sequence, rows),
                threshold=inputs.threshold,
            )
            weights, valid = reference_weights(call)
            is_zero = weights == 0
            zeros += int(is_zero.sum() if valid is None else (is_zero & valid).sum())
            counted += weights.numel() if valid is None else int(valid.sum())
    return zeros / counted if counted else float("nan")


def _mask_of_rows(inputs: Inputs, sequence: int, rows: slice) -> Tensor | None:
    """The mask for some queries of one sequence: ``[1, heads or 1, rows or 1, keys]``."""
    if inputs.is_causal:
        queries = torch.arange(rows.start, rows.stop)
        return torch.arange(inputs.key.size(2)) <= queries[:, None]
    if inputs.mask is None:
        return None
    mask = inputs.mask.expand(inputs.query.size(0), -1, -1, -1)[sequence, None]
    return mask if mask.size(2) == 1 else mask[:, :, rows]


def _normal_heads(case: Case, generator: torch.Generator) -> list[Tensor]:
    shapes = [(case.batch, case.heads, n, case.dim) for n in (case.queries, case.length)]
    return [torch.randn(shape, generator=generator) for shape in (*shapes, shapes[-1])]


def _demo_heads(case: Case, generator: torch.Generator) -> list[Tensor]:
    """Rows of the trained model's heads, drawn with replacement.

    They come from the encoder's self-attention, from the decoder's for the causal modes, and from
    cross-attention for decode. A key and its value stay together.
    """
    kind = "decoder" if case.is_causal else "cross" if case.mode == "decode" else "encoder"
    stored = _load_demo_heads()
    query, key, value = (stored[f"{kind}.{name}"] for name in ("query", "key", "value"))
    if query.size(-1) != DEMO_DIM:
        raise ValueError(f"{DEMO_FILE.name} has {query.size(-1)} features, expected {DEMO_DIM}")
    heads = torch.arange(case.heads) % query.size(0)  # [heads]

    def draw(count: int) -> Tensor:
        shape = (case.batch, case.heads, count)
        return torch.randint(query.size(1), shape, generator=generator)

    query_rows, key_rows = draw(case.queries), draw(case.length)
    heads = heads[:, None]
    return [query[heads, query_rows], key[heads, key_rows], value[heads, key_rows]]


@cache
def _load_demo_heads() -> dict[str, Tensor]:
    """``{kind}.{query, key, value}``, each ``[heads, rows, dim]``, as float32."""
    return {name: tensor.float() for name, tensor in load_file(DEMO_FILE).items()}


def _make_mask(case: Case, generator: torch.Generator) -> Tensor | None:
    if case.mask == "padding":
        # Between half and all of the keys are visible, a different number for every sequence.
        shape = (case.batch, 1, 1, 1)
        lengths = torch.randint((case.length + 1) // 2, case.length + 1, shape, generator=generator)
        return torch.arange(case.length) < lengths
    if case.mask == "additive":
        shape = (1, case.heads, case.queries, case.length)
        bias = torch.randn(shape, generator=generator) * 0.1
        return bias.to(getattr(torch, case.dtype))
    return None

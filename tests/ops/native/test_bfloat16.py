"""Products of bfloat16: two at a time where the processor has AVX512-BF16, else in float32.

Which way a tile goes depends on its numbers: 0 and magnitudes from 2^-55 to below 2^55 are
moderate, and a tile with any other is widened to float32. So a single number compares the two ways.
"""

from typing import Any

import native_extension  # noqa: F401  (skips without it)
import pytest
import seeded_grid
import torch
from torch import Tensor

import relakit

NOT_MODERATE = 2.0**-56
"""Too small to change any result here."""


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def grid(seed: int, *shape: int) -> Tensor:
    """Multiples of 1/4, whose sums are exact in any order."""
    return seeded_grid.grid(seed, *shape).bfloat16()


def with_gradients(tensors: list[Tensor], backend: str, **options: Any) -> list[Tensor]:
    """The output for query, key and value, and their gradients for the last of the tensors."""
    *leaves, upstream = (x.detach().clone() for x in tensors)
    for x in leaves:
        x.requires_grad_()
    output = relakit.attention(*leaves, backend=backend, **options)
    return [output, *torch.autograd.grad(output, leaves, upstream)]


def exact(tensors: list[Tensor], **options: Any) -> list[Tensor]:
    return with_gradients([x.double() for x in tensors], "reference", **options)


def not_moderate(x: Tensor) -> Tensor:
    """The same, but the first row of each 64 has one feature more, which is tiny; others have 0."""
    more = torch.zeros_like(x[..., :1])
    more[..., ::64, :] = NOT_MODERATE
    return torch.cat([x, more], -1)


@pytest.mark.parametrize("which", ["query", "key"])
@pytest.mark.parametrize("threshold", [-2.0, 0.03125, 1.3125])  # exact too
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dim", [6, 31, 64])
def test_scores_are_the_same_both_ways(
    isa: str, which: str, threshold: float, is_causal: bool, dim: int
) -> None:
    """On a grid bit by bit: outputs, and gradients but for that of the added feature."""
    tensors = [grid(i, 1, 2, 150, size) for i, size in enumerate((dim, dim, 40, 40))]
    zeros = torch.zeros(1, 2, 150, 1).bfloat16()
    plain = [torch.cat([x, zeros], -1) for x in tensors[:2]] + tensors[2:]
    other = list(plain)
    place = ("query", "key").index(which)
    other[place] = not_moderate(tensors[place])
    options = {"threshold": threshold, "scale": 0.25, "is_causal": is_causal}
    found = with_gradients(plain, "native", **options)
    widened = with_gradients(other, "native", **options)
    for x, y in zip(found, widened, strict=True):
        assert torch.equal(x[..., :dim], y[..., :dim])


@pytest.mark.parametrize("shift", [-6.0, 0.0, 0.9])
@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("length", [40, 300])
def test_error_is_that_of_one_rounding(
    isa: str, shift: float, scale: float | None, length: int
) -> None:
    tensors = [normal(i, 1, 2, length, 72) for i in range(4)]
    options = {"threshold": shift, "scale": scale}
    found = with_gradients(tensors, "native", **options)
    for x, y in zip(found, exact(tensors, **options), strict=True):
        torch.testing.assert_close(x.double(), y, rtol=2**-8, atol=1e-4)


@pytest.mark.parametrize("where", ["query", "key", "value"])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite(isa: str, where: str, bad: float) -> None:
    tensors = [grid(i, 1, 2, 140, 8) for i in range(4)]
    tensors[("query", "key", "value").index(where)][0, 1, 70, 3] = bad
    found = with_gradients(tensors, "native", threshold=0.03)
    expected = with_gradients([x.float() for x in tensors], "reference", threshold=0.03)
    for x, y in zip(found, expected, strict=True):
        torch.testing.assert_close(x.float(), y, equal_nan=True, rtol=2**-8, atol=1e-4)


@pytest.mark.parametrize(
    ("query", "key", "scale"),
    [
        pytest.param(-130, 120, 1.0, id="a number that the instruction takes for 0"),
        pytest.param(-70, -60, 1.0, id="products that it would round to 0"),
        pytest.param(64, 70, 2.0**-120, id="products that overflow before they are scaled"),
        pytest.param(-55, -55, 2.0**100, id="the least that it multiplies"),
    ],
)
def test_very_small_and_large_numbers(isa: str, query: int, key: int, scale: float) -> None:
    signs = grid(0, 2, 1, 2, 150, 33).sign()  # -1, 0 or 1
    q, k = (signs[0].double() * 2.0**query), (signs[1].double() * 2.0**key)
    v = grid(1, 1, 2, 150, 16)
    details = relakit.attention_details(
        q.bfloat16(), k.bfloat16(), v, scale=scale, weights="dense", backend="native"
    )
    weights = torch.relu(q @ k.mT * scale)
    assert torch.equal(details.weights > 0, weights > 0)
    torch.testing.assert_close(details.weights.double(), weights, rtol=2**-8, atol=0.0)


def test_division_by_length_is_rounded_once() -> None:
    """What comes out of float32, in bfloat16."""
    tensors = [normal(i, 2, 3, 40, 16) for i in range(4)]
    for mask in (None, normal(5, 40, 40), torch.arange(40) % 3 > 0):
        options = {"length_exponent": 0.5, "attn_mask": mask}
        actual = with_gradients(tensors, "native", **options)
        if mask is not None and mask.dtype == torch.bfloat16:
            options["attn_mask"] = mask.float()
        expected = with_gradients([x.float() for x in tensors], "native", **options)
        for x, y in zip(actual, expected, strict=True):
            assert torch.equal(x, y.bfloat16())
    for weights in ("dense", "csr"):
        found, exactly = (
            relakit.attention_details(*x, length_exponent=0.5, weights=weights, backend="native")
            for x in (tensors[:3], [x.float() for x in tensors[:3]])
        )
        assert torch.equal(found.weights.to_dense(), exactly.weights.to_dense().bfloat16())
        assert torch.equal(found.statistics.sums, exactly.statistics.sums)

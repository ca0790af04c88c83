"""Screening with small integers must let every score through that is above its threshold.

It is forced here, for any length and any share of non-zeros but all; where an instruction set has
none, the tests hold all the same.
"""

from collections.abc import Iterator
from itertools import product

import pytest
import torch
from native_extension import NATIVE
from torch import Tensor

import relakit

ALWAYS = {
    "dense_forward": 1.0,
    "dense_backward": 1.0,
    "most_candidates": 1.0,
    "least_to_screen": 1,
    "most_to_fetch": 0.0,
}


@pytest.fixture(autouse=True)
def _forced(isa: str) -> Iterator[None]:
    dtypes = ("float32", "bfloat16")
    before = {dtype: NATIVE.attention_thresholds(isa, dtype) for dtype in dtypes}
    for dtype in dtypes:
        NATIVE.set_attention_thresholds(isa, dtype, **ALWAYS)
    yield
    for dtype in dtypes:
        NATIVE.set_attention_thresholds(isa, dtype, **before[dtype])


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def check_weights(q: Tensor, k: Tensor, threshold: float, scale: float = 1.0) -> int:
    """Compare with exact scores; returns how many weights there are.

    Float32 may round a score that nearly equals the threshold to either side.
    """
    v = normal(9, *k.shape).to(k.dtype)
    exact_q, exact_k = q.double() * scale, k.double()
    above = exact_q @ exact_k.mT - threshold
    norms = exact_q.norm(dim=-1, keepdim=True) * exact_k.norm(dim=-1).unsqueeze(-2)
    clear = above.abs() > 1e-5 * norms + 1e-6 * abs(threshold)
    options = {"threshold": threshold, "scale": scale, "backend": "native"}
    weights = relakit.attention_details(q, k, v, weights="dense", **options).weights
    assert torch.equal((weights > 0)[clear], (above > 0)[clear])
    # Without weights, lists may hold zeros; gradients then show what was found.
    q.requires_grad_()
    output = relakit.attention(q, k, v, **options)
    (grad,) = torch.autograd.grad(output.float().sum(), q)
    sums = v.double().sum(-1, keepdim=True).mT
    expected = scale * ((weights > 0).double() * sums) @ exact_k
    tolerance = {"rtol": 1e-4, "atol": 1e-4 * float(expected.abs().max())}
    if q.dtype == torch.float32 and bool(clear.all()):
        torch.testing.assert_close(grad.double(), expected, **tolerance)
    return int((weights > 0).sum())


@pytest.mark.parametrize("largest", [127, 4096], ids=["8 bits", "16 bits"])
@pytest.mark.parametrize("whole", [20, 0.5])
@pytest.mark.parametrize("sign", [1, -1])
def test_rounding_that_adds_up(isa: str, largest: int, whole: float, sign: int) -> None:
    """Every entry loses nearly half a unit, and all losses make the score smaller.

    The score is just above its threshold, the product of the integers below: by 7e-5 of it for 20
    units of 4096, by 0.03 for 20 of 127.
    """
    units = whole if whole >= 1 else int(whole * largest)
    entry = (units + 0.49) / largest
    signs = normal(0, 64).sign()
    row = (signs * entry).repeat(70, 1)
    row[:, 0] = signs[0]  # makes the unit 1 / largest
    q, k = row[None, None].clone(), sign * row[None, None]
    k[:, :, 1::2] = 0.0  # were all let through, nothing would be screened
    if sign < 0:
        k[:, :, 1::2] = 3 * k[:, :, :1]
    score = float((q.double() @ k.double().mT)[0, 0, 0, 0])
    threshold = score - 3e-5 * abs(score)
    assert check_weights(q, k, threshold) == 70 * 35


@pytest.mark.parametrize("zeros", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("dim", [8, 17, 64, 100, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_normal_rows(isa: str, zeros: float, dim: int, dtype: torch.dtype) -> None:
    q, k = (normal(i, 1, 2, 150, dim).to(dtype) for i in range(2))
    threshold = float(torch.special.ndtri(torch.tensor(zeros)))
    found = check_weights(q, k, threshold, dim**-0.5)
    assert 0.3 < found / ((1 - zeros) * 2 * 150 * 150) < 2


SIZES = [
    (size_q, size_k)
    for size_q, size_k in product((1e-25, 1e-12, 1.0, 1e10, 1e18), repeat=2)
    if 1e-30 < size_q * size_k < 1e30  # scores are float32 numbers
]


@pytest.mark.parametrize(("size_q", "size_k"), SIZES)
@pytest.mark.parametrize("threshold", [-0.5, 0.0, 1.0])
def test_any_magnitude(isa: str, size_q: float, size_k: float, threshold: float) -> None:
    q, k = size_q * normal(0, 1, 1, 66, 64), size_k * normal(1, 1, 1, 130, 64)
    check_weights(q, k, threshold * size_q * size_k)


@pytest.mark.parametrize("place", ["query", "key", "feature", "all keys"])
@pytest.mark.parametrize("size", [-1e6, 300.0])
def test_outliers(isa: str, place: str, size: float) -> None:
    q, k = normal(0, 1, 1, 140, 64), normal(1, 1, 1, 140, 64)
    if place == "query":
        q[0, 0, 7, 5] = size
    elif place == "key":
        k[0, 0, 130, 5] = size
    elif place == "feature":
        q[..., 3] = size
    else:
        k[..., 5] = size
    check_weights(q, k, 3.0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e30])
def test_what_cannot_be_rounded(isa: str, bad: float) -> None:
    """Rows whose norm is no float32 number are computed without screening."""
    q, k, v = (normal(i, 1, 1, 140, 64) for i in range(3))
    q[0, 0, 3, 3] = bad
    native = relakit.attention(q, k, v, threshold=8.0, backend="native")
    reference = relakit.attention(q, k, v, threshold=8.0, backend="reference")
    torch.testing.assert_close(native, reference, equal_nan=True, rtol=1e-4, atol=1e-3)

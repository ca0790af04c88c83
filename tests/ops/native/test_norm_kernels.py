"""Norm kernels: RMSNorm and gated RMSNorm equal the formula, with each instruction set here.

How the modules call them is in test_norm.py.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from norm_runs import make_norm, run, run_plain
from torch import Tensor, nn

import relakit

DTYPES = [torch.float32, torch.bfloat16]
SIZES = [1, 7, 63, 111, 512]
NAMES = ("output", "x", "gain", "gate")

every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
every_gating = pytest.mark.parametrize("is_gated", [True, False], ids=["gated", "plain"])


def assert_same(actual: list[Tensor], expected: list[Tensor], **options: Any) -> None:
    """Sums in another order; relative to the largest number of each result."""
    for name, x, y in zip(NAMES, actual, expected, strict=False):
        finite = y[y.isfinite()]
        largest = max(1.0, float(finite.detach().abs().max())) if finite.numel() else 1.0
        torch.testing.assert_close(
            x, y, atol=2e-6 * largest, rtol=0, msg=lambda m, n=name: f"{n}: {m}", **options
        )


def _error(actual: Tensor, exact: Tensor) -> float:
    return float((actual.double() - exact).detach().norm())


@pytest.mark.parametrize("size", SIZES)
@every_gating
def test_equals_the_formula(isa: str, calls: list[bool], is_gated: bool, size: int) -> None:
    norm, exact_norm = make_norm(size, is_gated), make_norm(size, is_gated, torch.float64)
    exact_norm.load_state_dict(norm.state_dict())
    for shape in ((size,), (5, size), (3, 70, size), (2, 3, 4, 5, size)):
        z, upstream = torch.randn(2, *shape)
        actual, plain = (f(norm, z, upstream=upstream) for f in (run, run_plain))
        exact = run(exact_norm, z.double(), upstream=upstream.double())
        for a, p, e in zip(actual, plain, exact, strict=True):
            assert a.shape == p.shape
            # A row of one feature has next to no gradient: terms as large as `upstream` cancel.
            largest = max(e.detach().norm(), upstream.norm())
            assert _error(a, e) <= 2 * _error(p, e) + 1e-6 * float(largest)
    assert sum(calls) == 4


@pytest.mark.parametrize("parameters", DTYPES, ids=str)
@pytest.mark.parametrize("size", SIZES)
@every_gating
def test_bfloat16_error(
    isa: str, calls: list[bool], is_gated: bool, size: int, parameters: torch.dtype
) -> None:
    """At most twice that of PyTorch; and no more than its own rounding at the end, in float32."""
    norm = make_norm(size, is_gated, parameters)
    z, upstream = torch.randn(2, 67, size).bfloat16()
    actual = run(norm, z, upstream=upstream)
    plain = run_plain(norm, z, upstream=upstream)
    exact = run(norm.double(), z.double(), upstream=upstream.double())
    assert sum(calls) == 1
    for a, p, e in zip(actual, plain, exact, strict=True):
        assert a.dtype == p.dtype
        assert _error(a, e) <= 2 * _error(p, e) + 1e-6 * float(e.detach().norm())


@pytest.mark.parametrize(("heads", "head_dim"), [(8, 64), (3, 7), (1, 33), (5, 1), (2, 16)])
@every_dtype
@every_gating
def test_heads_apart(
    isa: str, calls: list[bool], is_gated: bool, dtype: torch.dtype, heads: int, head_dim: int
) -> None:
    norm = make_norm(heads * head_dim, is_gated)
    attention = torch.randn(3, heads, 70, head_dim).to(dtype)
    for order in ((0, 2, 1, 3), (2, 0, 1, 3)):
        z = attention.permute(order)
        upstream = torch.randn(*z.shape[:2], heads * head_dim).to(dtype)
        actual = run(norm, z, heads_apart=True, upstream=upstream)
        expected = run(norm, z.flatten(2).contiguous(), upstream=upstream)
        assert actual[0].is_contiguous()
        assert actual[1].stride() == z.stride(), "the gradient has the layout of its tensor"
        actual[1] = actual[1].flatten(2)
        # In bfloat16 a sum in another order may fall on the other side of a tie.
        tolerance = {"atol": 2e-6, "rtol": 1e-5 if dtype == torch.float32 else 8e-3}
        for x, y in zip(actual, expected, strict=True):
            scale = max(1.0, float(y.detach().abs().max()))
            torch.testing.assert_close(x / scale, y / scale, **tolerance)
    assert sum(calls) == 4


STRIDED: dict[str, Callable[[Tensor], Tensor]] = {
    "every other row": lambda z: z.repeat_interleave(2, 1)[:, ::2],
    "part of the features": lambda z: torch.cat([z, z], -1)[..., : z.size(-1)],
    "positions first": lambda z: z.transpose(0, 1).contiguous().transpose(0, 1),
    "one row for all": lambda z: z[:, :1].expand(-1, z.size(1), -1),
    "one row": lambda z: z[:1, :1],
    "features strided": lambda z: z.mT.contiguous().mT,
}


@pytest.mark.parametrize("layout", STRIDED)
@every_gating
def test_strides(isa: str, calls: list[bool], is_gated: bool, layout: str) -> None:
    norm = make_norm(20, is_gated)
    z = STRIDED[layout](torch.randn(4, 9, 20))
    for change in STRIDED.values():
        upstream = change(torch.randn(4, 9, 20))[: z.size(0), : z.size(1)].expand_as(z)
        assert_same(run(norm, z, upstream=upstream), run_plain(norm, z, upstream=upstream))
    assert sum(calls) == (0 if layout == "features strided" else len(STRIDED))


@pytest.mark.parametrize("eps", [1e-8, 1e-2])
@pytest.mark.parametrize("size", [1e-30, 1e-6, 1e-4, 1.0, 1e4, 1e10, 1e25])
def test_small_and_large_numbers(isa: str, size: float, eps: float) -> None:
    """Squares that underflow and overflow, and gates that are open or closed."""
    norm = make_norm(33)
    norm.eps = eps
    z, upstream = size * torch.randn(5, 33), torch.randn(5, 33)
    actual, expected = (f(norm, z, upstream=upstream) for f in (run, run_plain))
    for x, y in zip(actual, expected, strict=True):
        assert torch.equal(x.isfinite(), y.isfinite())
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-5 * float(y.detach().abs().max()))


def test_sigmoid(isa: str) -> None:
    """Of a number next to which eps is large, with this gain and gate, the sigmoid is left over."""
    norm = relakit.GatedRMSNorm(1, eps=1.0)
    nn.init.constant_(norm.gate, 2.0**64)
    nn.init.constant_(norm.weight, 2.0**64)
    t = torch.cat([torch.linspace(-110, 110, 40_001), torch.tensor([-1e4, 1e4])])
    t = t[t != 0]
    with torch.no_grad():
        share = norm(t[:, None] / 2.0**64)[:, 0] / t
    exact = torch.sigmoid(t.double())
    torch.testing.assert_close(share.double(), exact, rtol=1e-6, atol=1e-37)


def test_zero_rows(isa: str) -> None:
    norm = make_norm(21)
    z, upstream = torch.randn(2, 6, 21)
    z[1::2] = 0
    actual, expected = (f(norm, z, upstream=upstream) for f in (run, run_plain))
    assert (actual[0][1::2] == 0).all()
    assert all(x.isfinite().all() for x in actual)
    assert_same(actual, expected)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("where", ["x", "gradient"])
@every_dtype
@every_gating
def test_what_is_not_finite(
    isa: str, is_gated: bool, dtype: torch.dtype, where: str, bad: float
) -> None:
    norm = make_norm(21, is_gated)
    z, upstream = torch.randn(2, 6, 21).to(dtype)
    (z if where == "x" else upstream)[4, 18] = bad
    actual, expected = (f(norm, z, upstream=upstream) for f in (run, run_plain))
    for x, y in zip(actual, expected, strict=True):
        assert torch.equal(x.isnan(), y.isnan())
        tolerance = 1e-5 if dtype == torch.float32 else 8e-3
        torch.testing.assert_close(x, y, rtol=tolerance, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("rows", [63, 64, 65, 1000])
@every_dtype
@every_gating
def test_threads_change_nothing(isa: str, is_gated: bool, dtype: torch.dtype, rows: int) -> None:
    norm = make_norm(512, is_gated)
    z, upstream = torch.randn(2, rows, 512).to(dtype)
    results = []
    for threads in (1, 2, 5, 2):
        torch.set_num_threads(threads)
        try:
            results.append(run(norm, z, upstream=upstream))
        finally:
            torch.set_num_threads(1)
    for other in results[1:]:
        assert all(torch.equal(x, y) for x, y in zip(results[0], other, strict=True))


@pytest.fixture
def _poisoned_memory() -> Iterator[None]:
    """Fresh memory is full of NaN."""
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("_poisoned_memory")
@every_dtype
def test_everything_is_written(isa: str, dtype: torch.dtype) -> None:
    for size, rows in itertools.product((1, 7, 63, 128), (1, 65)):
        norm = make_norm(size, dtype=dtype)
        z, upstream = torch.randn(2, rows, size).to(dtype)
        assert all(x.isfinite().all() for x in run(norm, z, upstream=upstream))
        z, upstream = torch.randn(2, 1, rows, 1, size).to(dtype)
        results = run(norm, z, heads_apart=True, upstream=upstream.flatten(2))
        assert all(x.isfinite().all() for x in results)


@pytest.mark.parametrize("shape", [(0, 8), (3, 0, 8), (2, 0, 3, 8)])
@every_gating
def test_nothing_to_do(isa: str, is_gated: bool, shape: tuple[int, ...]) -> None:
    norm = make_norm(8, is_gated)
    results = run(norm, torch.randn(shape), upstream=torch.randn(shape))
    assert results[0].shape == results[1].shape == shape
    assert all((x == 0).all() for x in results[2:])


@every_dtype
def test_memory_around_is_left_alone(isa: str, rooms: list[Tensor], dtype: torch.dtype) -> None:
    """Sanitizers do not see writes with a mask."""
    for size in (1, 7, 16, 17, 63):
        norm = make_norm(size)
        z, upstream = torch.randn(2, 5, size).to(dtype)
        run(norm, z, upstream=upstream)
    assert len(rooms) == 5 * 5  # output, 1 / RMS, and three gradients
    assert all((room[:32] == 7).all() and (room[-32:] == 7).all() for room in rooms)

"""`relakit.attention` on the native backend: the calls it serves, and what autograd makes of them.

The numbers of the kernels themselves are in test_kernels.py and test_paths.py.
"""

from collections.abc import Callable
from typing import Any

import native_extension  # noqa: F401  (skips without it)
import pytest
import torch
from seeded_grid import grid, inputs, with_gradients
from torch import Tensor
from torch._dynamo import compiled_autograd
from torch._subclasses.fake_tensor import FakeTensorMode
from torch_states import OTHER_PLACES

import relakit
from relakit.ops.native import extension

MASKS: dict[str, Callable[[], dict[str, Any]]] = {
    "none": dict,
    "causal": lambda: {"is_causal": True},
    "padding": lambda: {"attn_mask": (torch.arange(70) < 50)[None, None, None]},
    "keys": lambda: {"attn_mask": torch.arange(70) % 3 > 0},
    "rows": lambda: {"attn_mask": torch.arange(40)[:, None] % 3 > 0},
    "heads": lambda: {"attn_mask": grid(5, 2, 1, 70) > 0},
    "everything": lambda: {"attn_mask": grid(5, 2, 2, 40, 70) > 0},
    "transposed": lambda: {"attn_mask": (grid(5, 70, 40) > 0).mT},
    "bias": lambda: {"attn_mask": torch.where(torch.arange(70) < 50, 0.25, -torch.inf)},
    "one for all": lambda: {"attn_mask": torch.tensor(0.25)},
}


@pytest.mark.parametrize("mask", MASKS)
def test_equals_the_reference(direct: list[bool], mask: str) -> None:
    for options in ({}, {"threshold": 0.53, "power": 2.0, "scale": 0.25}):
        everything = {**MASKS[mask](), **options}
        actual = with_gradients(inputs(40, 70), backend="native", **everything)
        expected = with_gradients(inputs(40, 70), backend="reference", **everything)
        for x, y in zip(actual, expected, strict=True):
            torch.testing.assert_close(x, y, atol=1e-5 * float(y.abs().max() + 1), rtol=0)
    assert direct == [True, False] * 2  # the reference is not for it


@pytest.mark.parametrize(
    "sizes", [(0, 7), (5, 0), (0, 0)], ids=["no queries", "no keys", "nothing"]
)
def test_nothing_to_do(direct: list[bool], sizes: tuple[int, int]) -> None:
    for options in ({}, {"threshold": 0.53}, {"attn_mask": torch.ones(sizes, dtype=torch.bool)}):
        output, *grads = with_gradients(inputs(*sizes), **options)
        assert output.shape == (2, 2, sizes[0], 24)
        for grad, x in zip(grads, inputs(*sizes), strict=True):
            assert grad.shape == x.shape
        assert not any(x.any() for x in (output, *grads))
    assert direct == [True] * 3


@pytest.mark.parametrize("sizes", [(2, 0, 7), (2, 5, 0), (0, 5, 7)], ids=str)
@pytest.mark.parametrize("place", ["function mode", "compiler"])
def test_nothing_to_do_by_the_operator(place: str, sizes: tuple[int, int, int]) -> None:
    batch, queries, keys = sizes
    leaves = [x[:batch].requires_grad_() for x in inputs(queries, keys)]
    if place == "compiler":
        output = torch.compile(relakit.attention, backend="aot_eager", dynamic=False)(*leaves)
    else:
        with OTHER_PLACES[place]():
            output = relakit.attention(*leaves)
    output.sum().backward()
    for x in leaves:
        assert x.grad.shape == x.shape
        assert not x.grad.any()


def _heads_inside(x: Tensor) -> Tensor:
    return x.transpose(1, 2).contiguous().transpose(1, 2)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x,
    "heads inside": _heads_inside,
    "every other row": lambda x: x.repeat_interleave(2, 2)[:, :, ::2],
    "one sequence for all": lambda x: x[:1].expand_as(x),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("value_dim", [16, 24])
def test_operators_give_the_same_bits(dtype: torch.dtype, layout: str, value_dim: int) -> None:
    """In a mode that watches, calls go to torch's operators."""
    tensors = tuple(
        LAYOUTS[layout](torch.randn_like(x).to(dtype)) for x in inputs(40, 70, value_dim=value_dim)
    )
    cases = [MASKS[name]() for name in MASKS]
    cases += [{"threshold": 0.3}, {"power": 2}, {"scale": 0.7}, {"dropout_p": 0.5}]
    if dtype == torch.bfloat16:
        cases.append({"attn_mask": grid(3, 40, 70).bfloat16()})
    for options in cases:
        torch.manual_seed(0)
        result = with_gradients(tensors, **options)
        torch.manual_seed(0)
        with OTHER_PLACES["dispatch mode"]():
            watched = with_gradients(tensors, **options)
        for x, y in zip(watched, result, strict=True):
            assert torch.equal(x, y)
            assert x.stride() == y.stride()


@pytest.mark.parametrize(
    "change",
    [
        lambda q, k, v: (q[0], k[0], v[0]),
        lambda q, k, v: (q, k[:1], v[:1]),
        lambda q, k, v: (q.double(), k.double(), v.double()),
        lambda q, k, v: (q.mT.contiguous().mT, k, v),
        lambda q, k, v: (torch.nn.functional.pad(x, (0, 300)) for x in (q, k, v)),
    ],
)
def test_the_unusual_goes_another_way(direct: list[bool], change: Any) -> None:
    tensors = tuple(change(*inputs(5, 7)))
    output = relakit.attention(*tensors)
    assert direct == [False]
    torch.testing.assert_close(output, relakit.attention(*tensors, backend="reference"))


def test_errors_have_words(direct: list[bool]) -> None:
    q, k, v = inputs(5, 7)
    with pytest.raises(ValueError, match="same number of positions"):
        relakit.attention(q, k, v[:, :, :6])
    with pytest.raises(ValueError, match="threshold must be a finite number"):
        relakit.attention(q, k, v, threshold=float("nan"))
    assert direct == [False, False]
    with pytest.raises(TypeError, match=r"key must be a torch\.Tensor, got list"):
        relakit.attention(q, k.tolist(), v)


def test_modes_see_the_call(direct: list[bool]) -> None:
    q, k, v = inputs(5, 7)
    with relakit.capture(torch.nn.Module()), torch.autocast("cpu", torch.bfloat16):
        assert relakit.attention(q, k, v).dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        assert relakit.attention(q, k, v).dtype == torch.bfloat16
    assert torch.func.vmap(relakit.attention)(q, k, v).shape == (2, 2, 5, 24)
    assert not any(direct)


def test_the_environment_chooses(direct: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(extension.BACKEND_VARIABLE, "reference")
    relakit.attention(*inputs(5, 7))
    relakit.attention(*inputs(5, 7), backend="native")
    assert direct == [False, True]
    monkeypatch.setenv(extension.ISA_VARIABLE, "abacus")
    with pytest.raises(ValueError, match="'abacus' is not usable here"):
        relakit.attention(*inputs(5, 7), backend="native")


class TestBackward:
    """What may stand between a call and its backward."""

    @pytest.fixture(params=[(5, 7), (300, 300)], ids=["few bits", "many bits"])
    def tensors(self, request: pytest.FixtureRequest) -> tuple[Tensor, ...]:
        return inputs(*request.param)

    def leaves(self, tensors: tuple[Tensor, ...]) -> list[Tensor]:
        return [x.clone().requires_grad_() for x in tensors]

    def expected(self, tensors: tuple[Tensor, ...], **options: Any) -> tuple[Tensor, ...]:
        leaves = self.leaves(tensors)
        output = relakit.attention(*leaves, backend="reference", **options)
        return torch.autograd.grad(output.sum(), leaves)

    def assert_right(self, actual: Any, tensors: tuple[Tensor, ...], **options: Any) -> None:
        for x, y in zip(actual, self.expected(tensors, **options), strict=True):
            torch.testing.assert_close(x, y, atol=1e-5 * float(y.abs().max() + 1), rtol=0)

    @pytest.mark.parametrize("threshold", [0.0, 0.53])
    def test_twice(self, tensors: tuple[Tensor, ...], threshold: float) -> None:
        leaves = self.leaves(tensors)
        total = relakit.attention(*leaves, threshold=threshold).sum()
        first = torch.autograd.grad(total, leaves, retain_graph=True)
        for x, y in zip(first, torch.autograd.grad(total, leaves), strict=True):
            assert torch.equal(x, y)
        self.assert_right(first, tensors, threshold=threshold)
        with pytest.raises(RuntimeError, match="second time"):
            torch.autograd.grad(total, leaves)

    def test_saved_tensors_come_back_changed(self, tensors: tuple[Tensor, ...]) -> None:
        """With equal numbers, but not ordinary: to be negated, or with gaps."""

        def unpack(x: Tensor) -> Tensor:
            if x.is_floating_point():
                return torch._neg_view(-x)
            return x.repeat_interleave(2, -1)[..., ::2]

        leaves = self.leaves(tensors)
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach().clone(), unpack):
            total = relakit.attention(*leaves).sum()
        self.assert_right(torch.autograd.grad(total, leaves), tensors)

    def test_an_input_changed_in_place_is_noticed(self, tensors: tuple[Tensor, ...]) -> None:
        leaves = self.leaves(tensors)
        output = relakit.attention(*leaves)
        with torch.no_grad():
            leaves[1].mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            output.sum().backward()

    def test_only_some_want_gradients(self, tensors: tuple[Tensor, ...]) -> None:
        expected = self.expected(tensors)
        for position in range(3):
            given = [x.clone() for x in tensors]
            given[position].requires_grad_()
            relakit.attention(*given).sum().backward()
            for i, x in enumerate(given):
                assert (x.grad is not None) == (i == position)
            torch.testing.assert_close(
                given[position].grad, expected[position], atol=1e-4, rtol=1e-5
            )

    @pytest.mark.parametrize("threshold", [0.0, 0.53])
    def test_second_derivatives(self, threshold: float) -> None:
        leaves = [x.double().float().requires_grad_() for x in inputs(3, 4)]
        results = []
        for backend in ("native", "reference"):
            output = relakit.attention(*leaves, threshold=threshold, backend=backend)
            grads = torch.autograd.grad(output.square().sum(), leaves, create_graph=True)
            total = sum((g.square().sum() for g in grads), torch.zeros(()))
            results.append(torch.autograd.grad(total, leaves))
        for x, y in zip(*results, strict=True):
            torch.testing.assert_close(x, y, atol=1e-3, rtol=1e-4)

    def test_a_compiler_for_backward(self, tensors: tuple[Tensor, ...]) -> None:
        leaves = self.leaves(tensors)
        total = relakit.attention(*leaves, threshold=0.53).sum()
        torch._dynamo.reset()
        with compiled_autograd._enable(torch.compile(backend="eager")):
            grads = torch.autograd.grad(total, leaves)
        self.assert_right(grads, tensors, threshold=0.53)


def test_a_sliding_window_over_few_queries() -> None:
    """torch.empty_like of rows that overlap has features that lie apart."""
    query = torch.randn(1, 2, 10 + 16 - 1).unfold(-1, 16, 1)
    key, value = torch.randn(2, 1, 2, 30, 16)
    assert torch.empty_like(query).stride(3) != 1
    expected = relakit.attention(query, key, value, backend="reference")
    torch.testing.assert_close(relakit.attention(query, key, value), expected)
    torch.testing.assert_close(relakit.attention_details(query, key, value).output, expected)


class TestOperators:
    """Called by themselves."""

    def call(self, *tensors: Tensor, mask: Any = None, threshold: Any = None) -> Tensor:
        output: Tensor
        options = (None, 0.25, 1, False, 0.0, False)
        output, _ = torch.ops.relakit.rela(*tensors, mask, threshold, *options)
        return output

    def test_the_layout_of_the_output_is_foretold(self) -> None:
        query, key, value = inputs(5, 7, value_dim=16)
        query = query.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)  # heads innermost
        real = self.call(query, key, value)
        with FakeTensorMode() as mode:
            fake = self.call(*map(mode.from_tensor, (query, key, value)))
        assert fake.stride() == real.stride()

    def test_arguments_that_are_refused(self) -> None:
        q, k, v = inputs(5, 7)
        with pytest.raises(ValueError, match=r"relakit::rela cannot .* value torch.float32 \(2,"):
            self.call(q, k, v[0])
        with pytest.raises(ValueError, match=r"these arguments.*mask torch.float64 \(5, 7\)"):
            self.call(q, k, v, mask=torch.zeros(5, 7).double())
        with pytest.raises(ValueError, match=r"mask None, threshold torch.float32 \(3,\)"):
            self.call(q, k, v, threshold=torch.zeros(3))

    def test_without_kernels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(extension.ISA_VARIABLE, "sse9")
        with pytest.raises(RuntimeError, match="relakit::rela cannot run: RELAKIT_CPU_ISA='sse9'"):
            self.call(*inputs(5, 7))


@pytest.mark.parametrize("name", ["grouped heads", "learned thresholds", "dropout", "statistics"])
def test_one_way_for_every_option(direct: list[bool], name: str) -> None:
    q, k, v = (x.requires_grad_() for x in inputs(5, 7))
    if name == "grouped heads":
        relakit.attention(q, k[:, :1], v[:, :1], enable_gqa=True).sum().backward()
    elif name == "learned thresholds":
        threshold = torch.zeros(2, requires_grad=True)
        relakit.attention(q, k, v, threshold=threshold).sum().backward()
        assert threshold.grad is not None
    elif name == "dropout":
        relakit.attention(q, k, v, dropout_p=0.1).sum().backward()
    else:
        assert relakit.attention_details(q, k, v).statistics is not None
    assert direct == [True]


def test_dropout_follows_the_generator() -> None:
    q, k, v = inputs(5, 7)
    torch.manual_seed(3)
    first, second = (relakit.attention(q, k, v, dropout_p=0.5) for _ in range(2))
    torch.manual_seed(3)
    assert torch.equal(relakit.attention(q, k, v, dropout_p=0.5), first)
    assert not torch.equal(first, second)


def test_tensors_without_numbers_may_have_features_apart() -> None:
    query, key, value = torch.randn(3, 2, 4, 8, 10).mT
    assert relakit.attention(query[:, :, :0], key, value).shape == (2, 4, 0, 8)
    assert relakit.attention(query[:0], key[:0], value[:0]).shape == (0, 4, 10, 8)
    output, weights = relakit.attention(
        query, key[:, :, :0], value[:, :, :0], need_weights=True, backend="native"
    )
    assert weights.shape == (2, 4, 10, 0)
    assert torch.equal(output, torch.zeros(2, 4, 10, 8))

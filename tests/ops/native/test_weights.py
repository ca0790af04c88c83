"""`relakit.attention` on the native backend, asked for its weights and statistics."""

from collections.abc import Callable
from typing import Any

import native_extension  # noqa: F401  (skips without it)
import numpy as np
import pytest
import torch
from seeded_grid import grid, inputs, with_gradients
from torch import Tensor

import relakit


class TestWeights:
    """Weights under autograd, which `MultiheadAttention` asks for by default."""

    @pytest.fixture(params=[{}, {"power": 2.0}, {"threshold": 0.53}, {"is_causal": True}], ids=str)
    def options(self, request: pytest.FixtureRequest) -> dict[str, Any]:
        return dict(request.param)

    def gradients(
        self, backend: str, options: dict[str, Any], *, of_output: float, of_weights: float
    ) -> list[Tensor]:
        leaves = [x.requires_grad_() for x in inputs(5, 7)]
        threshold = torch.full((2,), options.get("threshold", 0.0)).requires_grad_()
        options = {**options, "threshold": threshold}
        output, weights = relakit.attention(*leaves, need_weights=True, backend=backend, **options)
        loss = of_output * output.square().sum() + of_weights * weights.square().sum()
        return [
            output,
            weights,
            *torch.autograd.grad(loss, [*leaves, threshold], allow_unused=True),
        ]

    @pytest.mark.parametrize(("of_output", "of_weights"), [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
    def test_gradients(
        self,
        direct: list[bool],
        options: dict[str, Any],
        of_output: float,
        of_weights: float,
    ) -> None:
        sums = {"of_output": of_output, "of_weights": of_weights}
        actual = self.gradients("native", options, **sums)
        assert direct == [True]
        expected = self.gradients("reference", options, **sums)
        for x, y in zip(actual, expected, strict=True):
            y = torch.zeros_like(x) if y is None else y
            torch.testing.assert_close(torch.zeros_like(y) if x is None else x, y)

    def test_they_may_be_changed_before_backward(self) -> None:
        tensors = inputs(5, 7)
        leaves = [x.detach().requires_grad_() for x in tensors]
        output, weights = relakit.attention(*leaves, need_weights=True)
        weights.detach().zero_()
        actual = torch.autograd.grad(output, leaves, grid(9, *output.shape))
        for x, y in zip(actual, with_gradients(tensors)[1:], strict=True):
            assert torch.equal(x, y)

    def test_only_the_weights_are_used(self) -> None:
        x = inputs(5, 5, value_dim=16)[0].requires_grad_()
        _, weights = relakit.attention(x, x, x, need_weights=True, backend="native")
        (actual,) = torch.autograd.grad(weights.sum(), x)
        _, weights = relakit.attention(x, x, x, need_weights=True, backend="reference")
        torch.testing.assert_close(actual, torch.autograd.grad(weights.sum(), x)[0])

    def test_dropout(self) -> None:
        """A dropped weight passes no gradient, a kept one as many times as it is larger."""
        q, k, v = (x.requires_grad_() for x in inputs(40, 70))
        _, weights = relakit.attention(q, k, v, dropout_p=0.5, need_weights=True)
        upstream = grid(5, *weights.shape)
        scores = (q * 16**-0.5) @ k.mT
        kept = torch.where(weights.detach() != 0, 2.0, 0.0)
        torch.testing.assert_close(weights, scores * kept)
        for x in (q, k):
            (actual,) = torch.autograd.grad(weights, x, upstream, retain_graph=True)
            (expected,) = torch.autograd.grad(scores * kept, x, upstream, retain_graph=True)
            torch.testing.assert_close(actual, expected)

    def test_everything_is_dropped(self) -> None:
        leaves = [x.requires_grad_() for x in inputs(5, 7)]
        output, weights = relakit.attention(*leaves, dropout_p=1.0, need_weights=True)
        grads = torch.autograd.grad(output.sum() + weights.sum(), leaves)
        assert not any(x.any() for x in (output, weights, *grads))

    def test_derivatives_that_dropout_excludes(self) -> None:
        query, key, value = (x.requires_grad_() for x in inputs(5, 7))
        output = relakit.attention(query, key, value, dropout_p=0.5)
        message = "no second or batched derivatives with dropout; use backend='reference'"
        with pytest.raises(RuntimeError, match=message):
            torch.autograd.grad(output.sum(), query, create_graph=True)
        output = relakit.attention(query, key, value, dropout_p=0.5)
        with pytest.raises(RuntimeError, match=message):
            torch.func.vmap(lambda x: torch.autograd.grad(output, query, x))(
                torch.ones(2, *output.shape)
            )

    def test_second_derivatives(self) -> None:
        results = []
        for backend in ("native", "reference"):
            leaves = [x.requires_grad_() for x in inputs(3, 4)]
            output, weights = relakit.attention(*leaves, need_weights=True, backend=backend)
            loss = output.square().sum() + weights.square().sum()
            grads = torch.autograd.grad(loss, leaves, create_graph=True)
            total = sum((g.square().sum() for g in grads), torch.zeros(()))
            results.append(torch.autograd.grad(total, leaves))
        for x, y in zip(*results, strict=True):
            torch.testing.assert_close(x, y, atol=1e-3, rtol=1e-4)

    def test_half_precision(self) -> None:
        leaves = [x.bfloat16().requires_grad_() for x in inputs(5, 7)]
        output, weights = relakit.attention(*leaves, need_weights=True, backend="native")
        assert weights.dtype == torch.bfloat16
        grads = torch.autograd.grad(output.sum() + weights.sum(), leaves)
        assert all(grad.dtype == torch.bfloat16 for grad in grads)


class Named(Tensor):
    pass


UNUSUAL_CALLS: dict[str, Callable[[], dict[str, Any]]] = {
    "weights wanted by a number": lambda: {"need_weights": 1},
    "weights wanted by NumPy": lambda: {"need_weights": np.bool_(True)},
    "a scale of NumPy's": lambda: {"scale": np.float32(0.25)},
    "a probability of NumPy's": lambda: {"dropout_p": np.float32(0)},
    "a mask of another class": lambda: {"attn_mask": (grid(5, 5, 7) > 0).as_subclass(Named)},
    "a threshold of another class": lambda: {"threshold": torch.zeros(2).as_subclass(Named)},
}


@pytest.mark.parametrize("case", UNUSUAL_CALLS)
def test_weights_and_statistics_of_unusual_calls(case: str) -> None:
    options = {"need_weights": True, **UNUSUAL_CALLS[case]()}
    expected = relakit.attention(*inputs(5, 7), backend="reference", **options)
    actual = relakit.attention(*inputs(5, 7), **options)
    for x, y in zip(actual, expected, strict=True):
        torch.testing.assert_close(torch.Tensor(x), torch.Tensor(y))
    del options["need_weights"]
    details = relakit.attention_details(*inputs(5, 7), statistics=1, **options)
    assert details.statistics is not None
    assert torch.equal(details.statistics.nonzeros, (expected[1] != 0).sum(-1))


def test_a_module_whose_weights_are_wanted_by_a_number() -> None:
    x = torch.randn(2, 5, 16)
    module = relakit.MultiheadAttention(16, 2, batch_first=True)
    torch.testing.assert_close(module(x, x, x, need_weights=1), module(x, x, x))


def test_weights_under_autocast_for_another_device() -> None:
    expected = relakit.attention(*inputs(5, 7), need_weights=True)
    torch.set_autocast_enabled("cuda", True)
    try:
        actual = relakit.attention(*inputs(5, 7), need_weights=True)
    finally:
        torch.set_autocast_enabled("cuda", False)
    torch.testing.assert_close(actual, expected)


def test_an_operator_has_no_weights() -> None:
    q, k, v = inputs(5, 7)
    with pytest.raises(ValueError, match="it returns only the output where the call is compiled"):
        relakit.attention(q, k, v.as_subclass(Named), need_weights=True, backend="native")

"""Sparsemax and 1.5-entmax in C++ equal the reference, with each instruction set here."""

import math
from functools import partial
from typing import Any

import native_extension  # noqa: F401  (skips without it)
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import relakit
from relakit import attention_details
from relakit.ops.activations import ACTIVATIONS, ScoreOptions
from relakit.ops.backends import native as native_backend
from relakit.ops.native import simplex
from relakit.ops.native.simplex import SimplexWeights, simplex_gradient

NAMES = ("sparsemax", "entmax15")
LENGTHS = [(1, 1), (5, 7), (3, 16), (7, 17), (33, 64), (63, 111)]

every_name = pytest.mark.parametrize("name", NAMES)


def inputs(queries: int, keys: int, sharpness: float = 1.0) -> list[Tensor]:
    """Sharp scores leave few keys with weight, flat ones leave nearly all."""
    query, key, value = (torch.randn(2, 3, n, 8) for n in (queries, keys, keys))
    return [query * sharpness, key, value]


def run(tensors: list[Tensor], name: str, backend: str, **options: object) -> list[Tensor]:
    """Output, weights and gradients of query, key and value."""
    leaves = [x.detach().requires_grad_() for x in tensors]
    output, weights = relakit.attention(
        *leaves, activation=name, backend=backend, need_weights=True, **options
    )
    upstream = torch.linspace(-1, 1, output.numel()).view_as(output).to(output.dtype)
    return [output, weights, *torch.autograd.grad(output, leaves, upstream)]


def error(actual: Tensor, exact: Tensor) -> float:
    return float((actual.double() - exact).detach().norm())


@every_name
@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
@pytest.mark.parametrize("masking", ["none", "causal", "mask", "bias"])
def test_equals_the_reference(isa: str, name: str, queries: int, keys: int, masking: str) -> None:
    mask = torch.rand(2, 1, queries, keys) < 0.6
    mask[0, 0, 0] = False  # a query without keys
    bias = torch.randn(queries, keys).masked_fill(torch.rand(queries, keys) < 0.3, -math.inf)
    options = {
        "none": {},
        "causal": {"is_causal": True},
        "mask": {"attn_mask": mask},
        "bias": {"attn_mask": bias},
    }[masking]
    exact_options = {"attn_mask": bias.double()} if masking == "bias" else options
    for sharpness in (0.1, 1.0, 10.0):
        tensors = inputs(queries, keys, sharpness)
        actual = run(tensors, name, "native", **options)
        plain = run(tensors, name, "reference", **options)
        exact = run([x.double() for x in tensors], name, "reference", **exact_options)
        for a, p, e in zip(actual, plain, exact, strict=True):
            # Near-ties at the threshold fall either way, for both.
            assert error(a, e) <= 2 * error(p, e) + 2e-6 * max(1.0, float(e.detach().norm()))


@every_name
def test_bfloat16(isa: str, name: str) -> None:
    tensors = [x.bfloat16() for x in inputs(33, 47)]
    actual, plain = (run(tensors, name, backend) for backend in ("native", "reference"))
    exact = run([x.double() for x in tensors], name, "reference")
    for a, p, e in zip(actual, plain, exact, strict=True):
        assert a.dtype == torch.bfloat16
        assert error(a, e) <= 2 * error(p, e)


@every_name
def test_rows_add_up_to_one_whatever_the_scores(isa: str, name: str) -> None:
    """Also far from 0, where a threshold next to the scores would have few digits left."""
    scores = torch.randn(50, 37)
    for shift in (0.0, -3e4, 3e4):
        shifted = (scores * 4).round() / 4 + shift  # exact in float32
        weights = SimplexWeights.apply(shifted, name == "entmax15")
        torch.testing.assert_close(weights.sum(-1), torch.ones(50))
        unshifted = SimplexWeights.apply(shifted - shift, name == "entmax15")
        torch.testing.assert_close(weights, unshifted, rtol=0, atol=1e-6)


@every_name
def test_one_key_far_above_the_others_takes_all(isa: str, name: str) -> None:
    weights = SimplexWeights.apply(torch.tensor([[0.0, 1e30, -1e30, 5.0]]), name == "entmax15")
    assert weights.tolist() == [[0.0, 1.0, 0.0, 0.0]]


@every_name
@pytest.mark.parametrize("keys", [1, 3, 8, 20, 33])
def test_masked_rows_are_zero_with_zero_gradient(isa: str, name: str, keys: int) -> None:
    scores = torch.full((2, keys), -math.inf)
    scores[1] = 0.0
    scores.requires_grad_()
    weights = SimplexWeights.apply(scores, name == "entmax15")
    (gradient,) = torch.autograd.grad(weights, scores, torch.randn(2, keys))
    assert torch.equal(weights[0], torch.zeros(keys))
    assert torch.equal(gradient[0], torch.zeros(keys))
    torch.testing.assert_close(weights[1], torch.full((keys,), 1 / keys))


@every_name
def test_nan_does_not_vanish(isa: str, name: str) -> None:
    scores = torch.zeros(3, 20)
    scores[1, 18] = math.nan
    scores.requires_grad_()
    weights = SimplexWeights.apply(scores, name == "entmax15")
    assert weights.isnan().all(-1).tolist() == [False, True, False]
    upstream = torch.arange(20.0).expand(3, 20)
    (gradient,) = torch.autograd.grad(weights, scores, upstream)
    formula = simplex_gradient(upstream, weights.detach(), name == "entmax15")
    torch.testing.assert_close(gradient, formula, equal_nan=True)
    # Sparsemax only asks where there is weight, so its gradient says nothing of NaN.
    assert gradient[1].isnan().tolist() == [name == "entmax15"] * 20


@every_name
def test_long_rows_add_up_to_one(isa: str, name: str) -> None:
    scores = torch.zeros(2, 100_000)
    scores[1] = torch.linspace(-1, 1, 100_000)
    sums = SimplexWeights.apply(scores, name == "entmax15").double().sum(-1)
    torch.testing.assert_close(sums, torch.ones(2).double(), rtol=0, atol=1e-4)


@every_name
def test_grouped_heads_and_a_learned_bias(isa: str, name: str) -> None:
    query, key, value = torch.randn(2, 4, 9, 8), *torch.randn(2, 2, 2, 11, 8)
    bias = torch.randn(9, 11)
    found = []
    for backend in ("native", "reference"):
        leaves = [x.detach().requires_grad_() for x in (query, key, value, bias)]
        output = relakit.attention(*leaves, enable_gqa=True, activation=name, backend=backend)
        found.append([output, *torch.autograd.grad(output.square().sum(), leaves)])
    for actual, expected in zip(*found, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@every_name
def test_results_do_not_depend_on_threads(isa: str, name: str) -> None:
    scores, upstream = torch.randn(2, 301, 97).unbind()
    found = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            leaf = scores.clone().requires_grad_()
            weights = SimplexWeights.apply(leaf, name == "entmax15")
            found.append([weights, *torch.autograd.grad(weights, leaf, upstream)])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(x, y) for x, y in zip(found[0], other, strict=True))


@every_name
def test_second_derivatives(name: str) -> None:
    scores = torch.randn(4, 9)

    def penalty(leaf: Tensor, weights: Tensor) -> Tensor:
        (gradient,) = torch.autograd.grad(weights.square().sum(), leaf, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), leaf)[0]

    leaf = scores.clone().requires_grad_()
    actual = penalty(leaf, SimplexWeights.apply(leaf, name == "entmax15"))
    exact = scores.double().requires_grad_()
    expected = penalty(exact, ACTIVATIONS[name](exact, None, ScoreOptions()))
    torch.testing.assert_close(actual.double(), expected, rtol=1e-4, atol=1e-5)


@every_name
def test_gradient_formula(name: str) -> None:
    """What second derivatives use, against the kernels."""
    scores = torch.randn(6, 13).requires_grad_()
    weights = SimplexWeights.apply(scores, name == "entmax15")
    upstream = torch.randn(6, 13)
    (expected,) = torch.autograd.grad(weights, scores, upstream)
    actual = simplex_gradient(upstream, weights.detach(), name == "entmax15")
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)


@every_name
def test_batched_gradients(name: str) -> None:
    scores = torch.randn(3, 6).requires_grad_()
    vectors = torch.randn(4, 3, 6)
    weights = SimplexWeights.apply(scores, name == "entmax15")
    (batched,) = torch.autograd.grad(
        weights, scores, vectors, is_grads_batched=True, retain_graph=True
    )
    one_by_one = [
        torch.autograd.grad(weights, scores, vector, retain_graph=True)[0] for vector in vectors
    ]
    torch.testing.assert_close(batched, torch.stack(one_by_one), rtol=1e-4, atol=1e-6)


@every_name
def test_dropout_and_statistics_as_in_the_reference(name: str) -> None:
    tensors = inputs(9, 12)
    found = []
    for backend in ("native", "reference"):
        torch.manual_seed(1)
        found.append(
            attention_details(
                *tensors, dropout_p=0.4, activation=name, weights="dense", backend=backend
            )
        )
    actual, expected = found
    torch.testing.assert_close(actual.weights, expected.weights, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(actual.statistics.sums, expected.statistics.sums)


def test_no_keys_and_no_queries(isa: str) -> None:
    for queries, keys in ((0, 5), (4, 0)):
        output = relakit.attention(*inputs(queries, keys), activation="entmax15", backend="native")
        assert output.shape == (2, 3, queries, 8)
        assert not output.any()


class Watching(TorchDispatchMode):
    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return function(*args, **(kwargs or {}))


def test_refusals_are_named() -> None:
    tensors = inputs(3, 4)
    attend = partial(relakit.attention, activation="entmax15", backend="native")
    with pytest.raises(ValueError, match=r"it computes float32 and bfloat16, not torch\.float64"):
        attend(*(x.double() for x in tensors))
    with Watching(), pytest.raises(ValueError, match="entmax15 only on ordinary tensors"):
        attend(*tensors)


def test_the_kernels_serve_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    served = []
    original = simplex.SIMPLEX_ACTIVATIONS["entmax15"]

    def watch(*args: object) -> Tensor:
        served.append(True)
        return original(*args)

    monkeypatch.setitem(native_backend.SIMPLEX_ACTIVATIONS, "entmax15", watch)
    relakit.attention(*inputs(3, 4), activation="entmax15")
    relakit.attention(*(x.double() for x in inputs(3, 4)), activation="entmax15")
    assert len(served) == 1

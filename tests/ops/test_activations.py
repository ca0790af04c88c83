"""`relakit.attention` with every activation, option and mask, against the NumPy oracle."""

import math
from typing import Any

import entmax
import numpy as np
import paper_numpy
import pytest
import torch
from torch import Tensor

import relakit

INF = math.inf
ACTIVATIONS = [
    "softmax",
    "sparsemax",
    "entmax15",
    "relu",
    "gelu",
    "leaky_relu",
    "sigmoid",
    "softpick",
]
OPTIONS = {
    "relu": [
        {"threshold": 0.3},
        {"threshold": -0.4},
        {"threshold": [0.2, -0.3]},
        {"power": 2.0},
        {"power": 1.5},
        {"power": 0.5},
        {"length_exponent": 0.5},
        {"length_exponent": 1.0},
        {"threshold": [-0.2, 0.1], "power": 2.0, "length_exponent": 1.0},
    ],
    "gelu": [
        {"threshold": 0.3},
        {"threshold": [0.2, -0.3]},
        {"length_exponent": 0.5},
        {"threshold": -0.4, "length_exponent": 1.0},
    ],
    "leaky_relu": [
        {"threshold": 0.3},
        {"threshold": [0.2, -0.3]},
        {"length_exponent": 1.0},
        {"threshold": -0.4, "length_exponent": 0.5},
    ],
}


def _case(activation: str, options: dict[str, Any]) -> Any:
    name = "-".join([activation, *(f"{k}={v}" for k, v in options.items())])
    return pytest.param(activation, options, id=name.replace(" ", ""))


CASES = [_case(name, options) for name in ACTIVATIONS for options in [{}, *OPTIONS.get(name, [])]]


def _inputs(
    queries: int = 5, keys: int = 9, heads: int = 2, key_heads: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    key_heads = key_heads or heads
    return (
        torch.randn(2, heads, queries, 4, dtype=torch.float64),
        torch.randn(2, key_heads, keys, 4, dtype=torch.float64),
        torch.randn(2, key_heads, keys, 3, dtype=torch.float64),
    )


def _bool_mask(*shape: int) -> Tensor:
    """About half of the keys; the first query has none at all."""
    mask = torch.rand(*shape) < 0.5
    mask[..., 0, :] = False
    return mask


def _float_mask(*shape: int) -> Tensor:
    """Finite biases, and -inf where `_bool_mask` is False."""
    return torch.randn(*shape, dtype=torch.float64).masked_fill(~_bool_mask(*shape), -INF)


def _mask(kind: str, queries: int, keys: int) -> dict[str, Any]:
    match kind:
        case "none":
            return {}
        case "causal":
            return {"is_causal": True}
        case "bool":
            return {"attn_mask": _bool_mask(queries, keys)}
        case "bool-per-head":
            return {"attn_mask": _bool_mask(2, 2, queries, keys)}
        case "padding":
            return {
                "attn_mask": torch.arange(keys) < torch.tensor([keys - 2, 0])[:, None, None, None]
            }
        case "float":
            return {"attn_mask": _float_mask(queries, keys)}
        case "float-per-head":
            return {"attn_mask": _float_mask(2, 2, queries, keys)}
        case "finite":
            return {"attn_mask": torch.randn(queries, keys, dtype=torch.float64)}
    raise AssertionError(kind)


def _tensor_options(options: dict[str, Any]) -> dict[str, Any]:
    """A list of thresholds as a tensor; the rest as it is."""
    return {
        k: torch.tensor(v, dtype=torch.float64) if isinstance(v, list) else v
        for k, v in options.items()
    }


def _assert_equals_oracle(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> None:
    ours = _tensor_options(options)
    output, weights = relakit.attention(q, k, v, need_weights=True, **ours)
    output_alone = relakit.attention(q, k, v, **ours)
    options.pop("enable_gqa", None)
    expected_output, expected_weights = paper_numpy.attention(q, k, v, **options)
    tolerance = {"rtol": 1e-10, "atol": 1e-12}
    torch.testing.assert_close(weights, torch.from_numpy(expected_weights), **tolerance)
    torch.testing.assert_close(output, torch.from_numpy(expected_output), **tolerance)
    torch.testing.assert_close(output_alone, torch.from_numpy(expected_output), **tolerance)


def _weights(scores: Tensor, activation: str, **options: Any) -> Tensor:
    """The activation alone: with keys and values = I, the queries are the scores."""
    identity = torch.eye(scores.shape[-1], dtype=scores.dtype)[None]
    return relakit.attention(
        scores[None], identity, identity, scale=1.0, activation=activation, **options
    )[0]


@pytest.mark.parametrize(
    "mask",
    ["none", "bool", "bool-per-head", "padding", "float", "float-per-head", "finite", "causal"],
)
@pytest.mark.parametrize(("activation", "options"), CASES)
def test_weights_and_outputs_equal_the_oracle(
    activation: str, options: dict[str, Any], mask: str
) -> None:
    q, k, v = _inputs()
    _assert_equals_oracle(q, k, v, activation=activation, **options, **_mask(mask, 5, 9))


@pytest.mark.parametrize("mask", ["none", "causal", "float"])
@pytest.mark.parametrize(
    ("queries", "keys"), [(1, 1), (1, 7), (7, 1), (7, 7), (13, 6), (63, 111)], ids=str
)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_lengths(activation: str, queries: int, keys: int, mask: str) -> None:
    q, k, v = _inputs(queries, keys)
    _assert_equals_oracle(q, k, v, activation=activation, **_mask(mask, queries, keys))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_scale(activation: str) -> None:
    _assert_equals_oracle(*_inputs(), activation=activation, scale=1.7)


@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_grouped_query_attention(activation: str, key_heads: int) -> None:
    q, k, v = _inputs(heads=4, key_heads=key_heads)
    options = {"threshold": [0.2, -0.3, 0.0, 0.5]} if activation in OPTIONS else {}
    mask = _float_mask(4, 5, 9)
    _assert_equals_oracle(
        q, k, v, attn_mask=mask, enable_gqa=True, activation=activation, **options
    )


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 40.0, 2000.0])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_tiny_and_huge_scores(activation: str, scale: float) -> None:
    """No overflow in an exponential, and softpick's 1e-8 in the denominator is where it belongs."""
    _assert_equals_oracle(*_inputs(), activation=activation, scale=scale)


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param(lambda: torch.randn(50, 13), id="random"),
        pytest.param(lambda: torch.randn(50, 64) / 8, id="wide-support"),
        pytest.param(lambda: torch.randint(0, 3, (200, 7)) / 8, id="ties"),
        pytest.param(lambda: torch.zeros(3, 7), id="all-equal"),
        pytest.param(lambda: 1e4 * torch.randn(50, 13), id="large"),
        pytest.param(lambda: 1e4 + torch.randn(50, 13), id="far-from-zero"),
        pytest.param(lambda: torch.randn(5, 1), id="single-key"),
    ],
)
@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
def test_sparsemax_and_entmax15_equal_the_entmax_package(name: str, scores: Any) -> None:
    scores = scores().double()
    upstream = torch.randn_like(scores)
    ours, theirs = (scores.clone().requires_grad_() for _ in range(2))
    actual = _weights(ours, name)
    expected = getattr(entmax, name)(theirs, dim=-1)
    actual.backward(upstream)
    expected.backward(upstream)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-8, atol=1e-8)


MARGIN = 1e-2
"""A finite difference must not step over a kink: gradcheck moves inputs by 1e-6."""


def _assert_far_from_kinks(q: Tensor, k: Tensor, activation: str, **options: Any) -> None:
    scores = paper_numpy.masked_scores(
        q.detach(), k.detach(), options.get("attn_mask"), options.get("is_causal", False)
    )
    thresholds = np.broadcast_to(options.get("threshold", 0.0), scores.shape[1])
    distances = [
        paper_numpy.kink_distance(row[row > -INF], activation, threshold)
        for heads in scores
        for head, threshold in zip(heads, thresholds, strict=True)
        for row in head
    ]
    assert min(distances) > MARGIN, "choose another seed: a score is too close to a kink"


@pytest.mark.parametrize("mask", ["none", "bool", "float", "causal"])
@pytest.mark.parametrize(("activation", "options"), CASES)
def test_gradients(activation: str, options: dict[str, Any], mask: str) -> None:
    torch.manual_seed(282)
    q, k, v = (
        torch.randn(1, 2, length, 2, dtype=torch.float64).requires_grad_() for length in (3, 4, 4)
    )
    masks = _mask(mask, 3, 4)
    _assert_far_from_kinks(q, k, activation, **options, **masks)

    tensors = {"query": q, "key": k, "value": v}
    rest = {"activation": activation, **_tensor_options(options), **masks}
    if mask == "float":
        tensors["attn_mask"] = rest.pop("attn_mask").requires_grad_()
    if isinstance(rest.get("threshold"), Tensor):
        tensors["threshold"] = rest.pop("threshold").requires_grad_()

    def output_and_weights(*values: Tensor) -> Any:
        arguments = dict(zip(tensors, values, strict=True))
        return relakit.attention(**arguments, **rest, need_weights=True)

    leaves = tuple(tensors.values())
    assert torch.autograd.gradcheck(output_and_weights, leaves)

    # Without weights another backend may serve the call; its gradients must be the same.
    output = relakit.attention(**tensors, **rest)
    upstream = torch.randn_like(output)
    torch.testing.assert_close(
        torch.autograd.grad(output, leaves, upstream),
        torch.autograd.grad(output_and_weights(*leaves)[0], leaves, upstream),
    )


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_of_grouped_queries(activation: str) -> None:
    torch.manual_seed(13)
    q, k, v = (
        torch.randn(1, heads, 3, 2, dtype=torch.float64).requires_grad_() for heads in (4, 2, 2)
    )
    _assert_far_from_kinks(q, k, activation)
    assert torch.autograd.gradcheck(
        lambda q, k, v: relakit.attention(q, k, v, activation=activation, enable_gqa=True),
        (q, k, v),
    )


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5, 2.0])
def test_no_gradient_below_or_at_the_threshold(power: float) -> None:
    """The derivative of x^0.5 at 0 is infinite; a key that is switched off must not show it."""
    scores = torch.tensor([[-1.0, 0.25, 0.5, 1.25]], dtype=torch.float64, requires_grad=True)
    _weights(scores, "relu", threshold=0.25, power=power).sum().backward()
    expected = [[0.0, 0.0, power * 0.25 ** (power - 1), power]]
    torch.testing.assert_close(scores.grad, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_relu_is_zero_up_to_the_threshold(power: float) -> None:
    scores = torch.tensor([[-3.0, 0.0, 0.25, 0.25 + 1e-9, 2.0]], dtype=torch.float64)
    weights = _weights(scores, "relu", threshold=0.25, power=power)
    assert (weights == 0).tolist() == [[True, True, True, False, False]]
    assert not torch.signbit(weights).any()


@pytest.mark.parametrize("mask", ["bool", "bool-per-head", "padding", "float", "float-per-head"])
@pytest.mark.parametrize(("activation", "options"), CASES)
def test_masked_keys_weigh_exactly_zero(
    activation: str, options: dict[str, Any], mask: str
) -> None:
    """Also with a threshold that makes the activation of a score of 0 non-zero."""
    q, k, v = _inputs()
    attn_mask = _mask(mask, 5, 9)["attn_mask"]
    masked = ~attn_mask if attn_mask.dtype == torch.bool else attn_mask == -INF
    output, weights = relakit.attention(
        q, k, v, attn_mask, activation=activation, need_weights=True, **_tensor_options(options)
    )
    masked = masked.expand(weights.shape)
    assert masked.any()
    assert (weights[masked] == 0).all()
    assert (weights[~masked] != 0).any()
    null = masked.all(-1)
    assert null.any()
    assert (output[null] == 0).all()


@pytest.mark.parametrize("activation", ["sparsemax", "entmax15", "relu", "softpick"])
def test_sparse_activations_give_exact_zeros(activation: str) -> None:
    weights = _weights(torch.tensor([[3.0, -3.0, -0.5]], dtype=torch.float64), activation)
    assert (weights == 0).tolist() == [[False, True, True]]


@pytest.mark.parametrize(
    ("activation", "option", "value"),
    [
        *((name, "threshold", 0.5) for name in ACTIVATIONS if name not in OPTIONS),
        *((name, "threshold", torch.zeros(2)) for name in ACTIVATIONS if name not in OPTIONS),
        *((name, "length_exponent", 1.0) for name in ACTIVATIONS if name not in OPTIONS),
        *((name, "power", 2.0) for name in ACTIVATIONS if name != "relu"),
    ],
    ids=lambda value: "tensor" if isinstance(value, Tensor) else str(value),
)
def test_option_without_a_meaning(activation: str, option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=option) as error:
        relakit.attention(*_inputs(), activation=activation, **{option: value})
    assert activation in str(error.value)
    if isinstance(value, float):
        with pytest.raises(ValueError, match=option):
            relakit.AttentionSpec(activation=activation, **{option: value})


def test_unknown_activation_lists_the_choices() -> None:
    with pytest.raises(ValueError, match="swish") as error:
        relakit.attention(*_inputs(), activation="swish")
    assert all(name in str(error.value) for name in ACTIVATIONS)


@pytest.mark.parametrize(
    "options",
    [
        {"power": 0.0},
        {"power": -1.0},
        {"threshold": torch.zeros(3)},
        {"threshold": torch.zeros(2, 1)},
        {"length_exponent": math.nan},
    ],
    ids=lambda options: "".join(f"{k}={v}" for k, v in options.items()),
)
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        relakit.attention(*_inputs(), activation="relu", **options)

"""`relakit.attention` against `F.scaled_dot_product_attention`, and its errors."""

import sys

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import relakit


def randn(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


SHAPES = {
    "usual": ((2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6)),
    "no batch": ((4, 3, 8), (4, 5, 8), (4, 5, 6)),
    "no heads": ((3, 8), (5, 8), (5, 6)),
    "more batch dimensions": ((2, 3, 4, 3, 8), (2, 3, 4, 5, 8), (2, 3, 4, 5, 6)),
    "keys broadcast over batch": ((2, 4, 3, 8), (1, 4, 5, 8), (1, 4, 5, 6)),
    "query without batch": ((4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6)),
    "one key head": ((2, 4, 3, 8), (2, 1, 5, 8), (2, 1, 5, 6)),
    "one query": ((2, 4, 1, 8), (2, 4, 5, 8), (2, 4, 5, 6)),
    "one key": ((2, 4, 3, 8), (2, 4, 1, 8), (2, 4, 1, 6)),
    "no keys": ((2, 4, 3, 8), (2, 4, 0, 8), (2, 4, 0, 6)),
    "no queries": ((2, 4, 0, 8), (2, 4, 5, 8), (2, 4, 5, 6)),
}
MASKS = {
    "none": {},
    "causal": {"is_causal": True},
    "bool": {"attn_mask": torch.tensor([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]).bool()},
    "bool row": {"attn_mask": torch.tensor([[1, 0, 1, 1, 0]]).bool()},
    "bool column": {"attn_mask": torch.tensor([[True], [False], [True]])},
    "float": {"attn_mask": torch.linspace(-2, 2, 15, dtype=torch.float64).view(3, 5)},
    "-inf": {"attn_mask": torch.tensor([[0.0, -torch.inf, 1, 2, -torch.inf]] * 3).double()},
    "scale": {"scale": 0.7},
}


@pytest.mark.parametrize("backend", [None, "reference", "sdpa"])
@pytest.mark.parametrize("mask", MASKS)
def test_softmax_equals_sdpa(mask: str, backend: str | None) -> None:
    inputs = [randn(*shape).requires_grad_() for shape in SHAPES["usual"]]
    expected = F.scaled_dot_product_attention(*inputs, **MASKS[mask])
    output = relakit.attention(*inputs, activation="softmax", backend=backend, **MASKS[mask])
    torch.testing.assert_close(output, expected)
    seed = torch.randn_like(output)
    torch.testing.assert_close(
        torch.autograd.grad(output, inputs, seed), torch.autograd.grad(expected, inputs, seed)
    )


@pytest.mark.parametrize("shapes", SHAPES)
def test_shapes_are_those_of_sdpa(shapes: str) -> None:
    inputs = [randn(*shape) for shape in SHAPES[shapes]]
    expected = F.scaled_dot_product_attention(*inputs)
    for activation in ("softmax", "relu", "sparsemax", "entmax15", "softpick", "sigmoid"):
        output, weights = relakit.attention(*inputs, activation=activation, need_weights=True)
        assert output.shape == expected.shape
        assert weights.shape == (*expected.shape[:-1], inputs[1].size(-2))
        if activation == "softmax":
            torch.testing.assert_close(output, expected)


@pytest.mark.parametrize(("key_heads", "value_heads"), [(2, 2), (1, 1), (4, 4), (2, 1)])
def test_grouped_queries_follow_sdpa(key_heads: int, value_heads: int) -> None:
    q, k, v = randn(2, 4, 3, 8), randn(2, key_heads, 5, 8), randn(2, value_heads, 5, 6)
    expected = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    for backend in ("reference", "sdpa"):
        output = relakit.attention(q, k, v, enable_gqa=True, activation="softmax", backend=backend)
        torch.testing.assert_close(output, expected)
    expanded = (x.repeat_interleave(4 // x.size(1), dim=1) for x in (k, v))
    torch.testing.assert_close(
        relakit.attention(q, k, v, enable_gqa=True), relakit.attention(q, *expanded)
    )


@pytest.mark.parametrize("mask_dims", [2, 3, 4])
def test_mask_broadcasts(mask_dims: int) -> None:
    q, k, v = (randn(*shape) for shape in SHAPES["usual"])
    mask = torch.rand((2, 4, 3, 5)[-mask_dims:]) < 0.5
    expected = relakit.attention(q, k, v, mask.expand(2, 4, 3, 5))
    assert torch.equal(relakit.attention(q, k, v, mask), expected)


def test_weights_are_those_that_met_the_values() -> None:
    q, k, v = (randn(*shape) for shape in SHAPES["usual"])
    output, weights = relakit.attention(q, k, v, dropout_p=0.5, need_weights=True)
    torch.testing.assert_close(weights @ v, output)
    _, full = relakit.attention(q, k, v, need_weights=True)
    kept = weights != 0
    torch.testing.assert_close(weights[kept], 2 * full[kept])
    assert 0.2 < kept.sum() / (full != 0).sum() < 0.8


def test_threshold_per_head_receives_gradients() -> None:
    q, k, v = (randn(*shape) for shape in SHAPES["usual"])
    threshold = torch.tensor([-0.5, 0.0, 0.5, 100.0], dtype=torch.float64, requires_grad=True)
    output, weights = relakit.attention(q, k, v, threshold=threshold, need_weights=True)
    for head, value in enumerate(threshold.tolist()):
        alone = relakit.attention(q[:, head], k[:, head], v[:, head], threshold=value)
        torch.testing.assert_close(output[:, head], alone)
    (gradient,) = torch.autograd.grad(output.sum(), threshold)
    expected = -((weights > 0).to(v) @ v).sum((0, 2, 3))
    torch.testing.assert_close(gradient, expected)


BAD_CALLS = {
    "features": ({"k": (2, 4, 5, 7)}, {}, "same number of features.*8 and 7"),
    "positions": ({"v": (2, 4, 6, 6)}, {}, "same number of positions.*5 and 6"),
    "heads": ({"k": (2, 2, 5, 8), "v": (2, 2, 5, 6)}, {}, "do not broadcast.*enable_gqa=True"),
    "batch": ({"k": (3, 4, 5, 8), "v": (3, 4, 5, 6)}, {}, r"\(2, 4, 3, 8\) and \(3, 4, 5, 8\)"),
    "gqa heads": (
        {"k": (2, 3, 5, 8), "v": (2, 3, 5, 6)},
        {"enable_gqa": True},
        "key must divide those of query, got 3 and 4",
    ),
    "one dimension": ({"q": (8,)}, {}, r"query must have at least 2 dimensions.*\(8,\)"),
    "mask shape": (
        {},
        {"attn_mask": torch.ones(3, 4, dtype=torch.bool)},
        r"\(3, 4\) does not broadcast.*\(2, 4, 3, 5\)",
    ),
    "mask larger than weights": (
        {},
        {"attn_mask": torch.ones(7, 2, 4, 3, 5, dtype=torch.bool)},
        r"does not broadcast",
    ),
    "mask dtype": (
        {},
        {"attn_mask": torch.ones(3, 5, dtype=torch.uint8)},
        "torch.bool or torch.float32 or torch.float64.*got torch.uint8",
    ),
    "mask and causal": (
        {},
        {"attn_mask": torch.ones(3, 5, dtype=torch.bool), "is_causal": True},
        "exclude each other",
    ),
    "dropout": ({}, {"dropout_p": 1.5}, "between 0 and 1, got 1.5"),
    "threshold shape": (
        {},
        {"threshold": torch.zeros(3)},
        r"one number per head, got shape \(3,\) .* 4 heads",
    ),
    "activation": ({}, {"activation": "softmx"}, "unknown activation 'softmx'.*softmax, sparsemax"),
    "power": ({}, {"power": 0.0}, "power must be a finite number above 0, got 0.0"),
    "threshold": ({}, {"threshold": float("nan")}, "threshold must be a finite number, got nan"),
    "length_exponent": ({}, {"length_exponent": float("inf")}, "a finite number, got inf"),
    "backend": ({}, {"backend": "cuda"}, "unknown backend 'cuda'; choose one of sdpa, native"),
    "backend refuses": (
        {},
        {"backend": "sdpa", "need_weights": True},
        "cannot serve this call: it computes softmax, not 'relu'; it does not return weights",
    ),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_calls_name_both_values(case: str) -> None:
    changed, arguments, message = BAD_CALLS[case]
    shapes = {"q": (2, 4, 3, 8), "k": (2, 4, 5, 8), "v": (2, 4, 5, 6)} | changed
    with pytest.raises(ValueError, match=message):
        relakit.attention(*(randn(*shape) for shape in shapes.values()), **arguments)


WRONG_TYPES = {
    "query": ({"query": [[1.0]]}, r"query must be a torch\.Tensor, got list"),
    "mask": ({"attn_mask": [[True] * 5] * 3}, r"attn_mask must be a torch\.Tensor, got list"),
    "threshold": ({"threshold": "learned"}, "a number or a tensor, got 'learned'"),
    "power": ({"power": "2"}, "power must be a number, got '2'"),
    "length_exponent": ({"length_exponent": None}, "length_exponent must be a number, got None"),
}


@pytest.mark.parametrize("case", WRONG_TYPES)
def test_wrong_types(case: str) -> None:
    changed, message = WRONG_TYPES[case]
    names = ("query", "key", "value")
    arguments = {name: randn(*shape) for name, shape in zip(names, SHAPES["usual"], strict=True)}
    with pytest.raises(TypeError, match=message):
        relakit.attention(**(arguments | changed))


def test_devices_must_agree() -> None:
    q, k, v = (randn(*shape) for shape in SHAPES["usual"])
    with pytest.raises(ValueError, match="one device, got cpu, meta and cpu"):
        relakit.attention(q, k.to("meta"), v)


@pytest.mark.parametrize("activation", ["relu", "softmax"])
def test_mask_of_one_dimension(activation: str) -> None:
    q, k, v = (randn(*shape) for shape in SHAPES["usual"])
    seen = torch.tensor([True, False, True, True, False])
    expected = relakit.attention(q, k, v, seen.expand(3, 5), activation=activation)
    torch.testing.assert_close(relakit.attention(q, k, v, seen, activation=activation), expected)


def test_threshold_per_head_of_broadcast_keys() -> None:
    q, k, v = randn(2, 1, 3, 8), randn(2, 4, 5, 8), randn(2, 4, 5, 6)
    threshold = torch.tensor([0.0, 0.5, -0.5, 9.0], dtype=torch.float64)
    expected = relakit.attention(q.expand(2, 4, 3, 8), k, v, threshold=threshold)
    torch.testing.assert_close(relakit.attention(q, k, v, threshold=threshold), expected)


def test_dtypes_must_agree() -> None:
    q, k, v = (randn(*shape) for shape in SHAPES["usual"])
    with pytest.raises(ValueError, match=r"one dtype, got torch.float64, torch.float64 and.*32"):
        relakit.attention(q, k, v.float())
    with pytest.raises(ValueError, match=r"floating point .* got torch.int64"):
        relakit.attention(q.long(), k.long(), v.long())


def test_nan_is_not_hidden() -> None:
    q, k, v = (randn(*shape) for shape in SHAPES["usual"])
    q[0, 0, 0, 0] = torch.nan
    for activation in ("relu", "softmax", "sparsemax", "entmax15", "sigmoid", "softpick"):
        output = relakit.attention(q, k, v, activation=activation)
        assert output[0, 0, 0].isnan().all(), activation
        assert output[0, 0, 1:].isfinite().all(), activation
    assert relakit.attention(q, k, v, power=2.0)[0, 0, 0].isnan().all()


@pytest.mark.parametrize("form", ["csr", "dense", "no"])
def test_forms_of_weights_are_for_another_function(form: str) -> None:
    query = randn(2, 4, 3, 8)
    for x in (query, query.float()):
        with pytest.raises(ValueError, match=f"True or False, got '{form}'; .*attention_details"):
            relakit.attention(x, x, x, need_weights=form)


def test_the_function_hides_no_module() -> None:
    import relakit.nn.variants
    import relakit.ops.attention

    assert relakit.attention is relakit.ops.attention.attention
    assert "relakit.attention" not in sys.modules
    assert dir(relakit) == sorted(relakit.__all__)


@pytest.mark.parametrize(
    ("scale", "problem"),
    [
        (torch.ones(1, requires_grad=True), "a tensor of 1 elements that requires a gradient"),
        (torch.ones(3, 1, 1), "a tensor of 3 elements; multiply the query by it"),
    ],
)
def test_a_scale_that_some_backends_would_ignore(scale: torch.Tensor, problem: str) -> None:
    query = torch.randn(1, 3, 4, 8)
    with pytest.raises(TypeError, match=f"scale must be a number, .* got {problem}"):
        relakit.attention(query, query, query, scale=scale)  # type: ignore[arg-type]
    expected = relakit.attention(query, query, query, scale=0.5)
    assert relakit.attention(query, query, query, scale=torch.tensor(0.5)).equal(expected)  # type: ignore[arg-type]


def test_a_dropout_that_is_a_tensor() -> None:
    query = torch.randn(1, 3, 4, 8)
    rate = torch.tensor(0.5, requires_grad=True)
    with pytest.raises(TypeError, match=r"dropout_p must be a .* that requires a gradient$"):
        relakit.attention(query, query, query, dropout_p=rate)  # type: ignore[arg-type]


def test_values_with_more_dimensions_than_query_and_key() -> None:
    query, key = torch.randn(2, 2, 8), torch.randn(2, 7, 8)
    value = torch.randn(2, 2, 7, 8)
    found = relakit.attention(query, key, value)
    expected = relakit.attention(query, key, value, backend="reference")
    torch.testing.assert_close(found, expected)

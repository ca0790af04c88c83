"""Null attention and numbers: exact zeros, finite gradients, half precision and autocast."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import relakit

INF = math.inf
HALF = [torch.bfloat16, torch.float16]
DTYPES = [torch.float64, torch.float32, *HALF]
ACTIVATIONS: list[tuple[str, dict[str, Any]]] = [
    ("softmax", {}),
    ("sparsemax", {}),
    ("entmax15", {}),
    ("relu", {}),
    ("relu", {"threshold": -0.5}),
    ("relu", {"power": 2.0}),
    ("relu", {"power": 0.5}),
    ("relu", {"length_exponent": 1.0}),
    ("gelu", {}),
    ("gelu", {"threshold": -0.5, "length_exponent": 1.0}),
    ("leaky_relu", {}),
    ("leaky_relu", {"threshold": -0.5, "length_exponent": 1.0}),
    ("sigmoid", {}),
    ("softpick", {}),
]
RELA = [name for name, spec in relakit.ATTENTIONS.items() if spec.norm != "none"]
DIM, HEADS = 32, 4

every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
every_half = pytest.mark.parametrize("dtype", HALF, ids=str)
every_activation = pytest.mark.parametrize(
    ("activation", "options"),
    [
        pytest.param(name, options, id="-".join([name, *(f"{k}={v}" for k, v in options.items())]))
        for name, options in ACTIVATIONS
    ],
)


def _tensors(dtype: torch.dtype, queries: int = 7, keys: int = 9) -> list[Tensor]:
    return [
        torch.randn(2, 3, length, 8).to(dtype).requires_grad_() for length in (queries, keys, keys)
    ]


def _mask(kind: str, dtype: torch.dtype) -> Tensor:
    """Query 0 has no key, query 1 half of them, the others all."""
    mask = torch.ones(7, 9, dtype=torch.bool)
    mask[0] = False
    mask[1, ::2] = False
    return mask if kind == "bool" else torch.zeros(7, 9, dtype=dtype).masked_fill(~mask, -INF)


def _all_finite(*tensors: Tensor | None) -> bool:
    return all(tensor is not None and bool(tensor.isfinite().all()) for tensor in tensors)


# The function.


@pytest.mark.parametrize("kind", ["bool", "float"])
@every_activation
@every_dtype
def test_query_without_keys(
    dtype: torch.dtype, activation: str, options: dict[str, Any], kind: str
) -> None:
    """What gives NaN in PyTorch's attention is null attention here."""
    q, k, v = _tensors(dtype)
    mask = _mask(kind, dtype)
    output, weights = relakit.attention(
        q, k, v, mask, activation=activation, need_weights=True, **options
    )
    assert output.dtype == weights.dtype == dtype
    assert (output[..., 0, :] == 0).all()
    assert (weights[..., 0, :] == 0).all()
    assert (weights[..., 1, ::2] == 0).all()
    assert (weights[..., 1, :] != 0).any()
    assert (
        relakit.attention(q, k, v, mask, activation=activation, **options)[..., 0, :] == 0
    ).all()


@pytest.mark.parametrize("factor", [1, 100])
@pytest.mark.parametrize("kind", ["bool", "float"])
@every_activation
@every_dtype
def test_gradients_with_a_query_without_keys(
    dtype: torch.dtype, activation: str, options: dict[str, Any], kind: str, factor: int
) -> None:
    q, k, v = _tensors(dtype)
    mask = _mask(kind, dtype)
    leaves = [q, k, v]
    if kind == "float":
        leaves.append(mask.requires_grad_())
    if "threshold" in options:
        threshold = torch.full((3,), options["threshold"], dtype=dtype).requires_grad_()
        options = {**options, "threshold": threshold}
        leaves.append(threshold)
    output = relakit.attention(q, k, v, mask, activation=activation, **options)
    output_with_weights, weights = relakit.attention(
        q, k, v, mask, activation=activation, need_weights=True, **options
    )
    for results in ([output], [output_with_weights, weights]):
        upstream = [factor * torch.randn_like(result) for result in results]
        gradients = torch.autograd.grad(results, leaves, upstream)
        assert _all_finite(*gradients)
        assert (gradients[0][..., 0, :] == 0).all()
        assert (gradients[0][..., 1:, :] != 0).any()
        if kind == "float":
            assert (gradients[3][0] == 0).all()
            assert (gradients[3][1, ::2] == 0).all()


@every_activation
@every_dtype
def test_every_query_without_keys(
    dtype: torch.dtype, activation: str, options: dict[str, Any]
) -> None:
    tensors = _tensors(dtype)
    mask = torch.zeros(7, 9, dtype=torch.bool)
    output = relakit.attention(*tensors, mask, activation=activation, **options)
    output.backward(torch.randn_like(output))
    assert (output == 0).all()
    assert all((tensor.grad == 0).all() for tensor in tensors)


@every_dtype
def test_query_with_negative_scores_only(dtype: torch.dtype) -> None:
    """Null attention without a mask."""
    q, k, v = (torch.rand(1, 2, 5, 8).to(dtype).requires_grad_() for _ in range(3))
    output = relakit.attention(q, -k, v)
    output.backward(torch.randn_like(output))
    assert (output == 0).all()
    assert all((tensor.grad == 0).all() for tensor in (q, k, v))


def test_statistics_are_of_weights_that_float16_cannot_hold() -> None:
    """509,000 is infinite in float16, and 1e-8 is 0."""
    query = torch.tensor([[500.0], [1e-4]], dtype=torch.float16)
    key = torch.tensor([[1018.0], [1e-4], [-1.0]], dtype=torch.float16)
    details = relakit.attention_details(
        query, key, key, scale=1.0, weights="dense", backend="reference"
    )
    assert details.weights is not None
    assert details.weights.dtype == torch.float16
    assert details.statistics is not None
    assert details.statistics.nonzeros.tolist() == [2, 2]
    expected = (query.float() @ key.float().mT).clamp(min=0).sum(-1)
    torch.testing.assert_close(details.statistics.sums, expected)


# The module.


def _module(attention: str, dtype: torch.dtype, **options: Any) -> relakit.MultiheadAttention:
    module = relakit.MultiheadAttention(
        DIM, HEADS, batch_first=True, attention=attention, **options
    )
    nn.init.normal_(module.in_proj_bias)
    nn.init.normal_(module.out_proj.bias)
    return module.to(dtype)


def _run_module(
    module: relakit.MultiheadAttention, dtype: torch.dtype, factor: float, size: float = 1.0
) -> tuple[Tensor, Tensor, list[Tensor | None]]:
    """Output, weights and all gradients of cross-attention. Queries 0 and 1 have no key, and the
    second sentence none at all; the other queries are of the given size."""
    query = (size * torch.randn(2, 7, DIM)).to(dtype).requires_grad_()
    context = torch.randn(2, 9, DIM).to(dtype).requires_grad_()
    masked = torch.zeros(7, 9, dtype=torch.bool)
    masked[:2] = True
    padding = torch.zeros(2, 9, dtype=torch.bool)
    padding[1] = True
    output, weights = module(
        query,
        context,
        context,
        attn_mask=masked,
        key_padding_mask=padding,
        average_attn_weights=False,
    )
    output.backward((factor * torch.randn(output.shape)).to(output.dtype))
    gradients = [query.grad, context.grad, *(p.grad for p in module.parameters())]
    return output, weights, gradients


@every_dtype
@pytest.mark.parametrize("name", ["relu", *RELA])
def test_module_on_queries_without_keys(name: str, dtype: torch.dtype) -> None:
    """Nothing enters the output projection; its bias is what is left."""
    module = _module(name, dtype)
    output, weights, _ = _run_module(module, dtype, factor=1)
    assert output.dtype == dtype
    null = [output[0, :2], output[1]]
    assert all(torch.equal(rows, module.out_proj.bias.expand_as(rows)) for rows in null)
    assert not torch.equal(output[0, 2:], module.out_proj.bias.expand_as(output[0, 2:]))
    assert (weights[0, :, :2] == 0).all()
    assert (weights[1] == 0).all()


@pytest.mark.parametrize("factor", [1, 100])
@every_dtype
@pytest.mark.parametrize("name", ["relu", *RELA])
def test_module_gradients_with_queries_without_keys(
    name: str, dtype: torch.dtype, factor: int
) -> None:
    """A null row meets the norm where its derivative is 1 / sqrt(eps) = 10,000: with an upstream
    gradient of 100 that is beyond fp16, and 0 * inf would be NaN."""
    _, _, gradients = _run_module(_module(name, dtype), dtype, factor)
    assert _all_finite(*gradients)
    assert any((gradient != 0).any() for gradient in gradients)


def _nearly_null(
    module: relakit.MultiheadAttention, dtype: torch.dtype, factor: int
) -> list[Tensor | None]:
    """Gradients where the weights are about 1e-4."""
    torch.manual_seed(1)
    with torch.no_grad():
        module.in_proj_bias[:DIM] = 0
    output, weights, gradients = _run_module(module, dtype, factor, size=3e-4)
    assert 1e-5 < weights.max() < 2e-3
    assert _all_finite(output)
    return gradients


@pytest.mark.parametrize(
    ("dtype", "factor"),
    [*((dtype, 1) for dtype in DTYPES), *((dtype, 100) for dtype in DTYPES[:-1])],
    ids=str,
)
@pytest.mark.parametrize("name", ["relu", *RELA])
def test_module_gradients_with_nearly_null_rows(name: str, dtype: torch.dtype, factor: int) -> None:
    assert _all_finite(*_nearly_null(_module(name, dtype), dtype, factor))


@pytest.mark.parametrize("name", RELA)
def test_overflow_in_float16_stays_with_the_query(name: str) -> None:
    """The same with an upstream gradient of 100 in fp16: the gradient of the projected query is too
    large for any fp16 number. That of everything else fits, and must not be drawn in."""
    module = _module(name, torch.float16)
    query, context, *_ = _nearly_null(module, torch.float16, factor=100)
    inputs = module.in_proj_weight, module.in_proj_bias
    others = [p for p in module.parameters() if all(p is not q for q in inputs)]
    assert len(others) >= 3
    assert _all_finite(context, *(p.grad[DIM:] for p in inputs), *(p.grad for p in others))

    exact = module.double()
    exact.zero_grad()
    query, *_ = _nearly_null(exact, torch.float64, factor=100)
    largest = max(query.abs().max(), exact.in_proj_bias.grad[:DIM].abs().max())
    assert largest > torch.finfo(torch.float16).max, "it would have fitted"


@every_dtype
@pytest.mark.parametrize("name", ["relu", *RELA])
def test_module_on_a_batch_of_nothing_but_padding(name: str, dtype: torch.dtype) -> None:
    module = _module(name, dtype)
    x = torch.randn(2, 5, DIM).to(dtype).requires_grad_()
    output, _ = module(x, x, x, key_padding_mask=torch.ones(2, 5, dtype=torch.bool))
    output.backward(100 * torch.randn_like(output))
    assert torch.equal(output, module.out_proj.bias.expand_as(output))
    assert _all_finite(x.grad, *(p.grad for p in module.parameters()))
    assert (x.grad == 0).all()


# Autocast.


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("autocast", HALF, ids=str)
@every_activation
def test_autocast_casts_as_for_sdpa(
    activation: str, options: dict[str, Any], autocast: torch.dtype, dtype: torch.dtype
) -> None:
    q, k, v = _tensors(dtype)
    with torch.autocast("cpu", dtype=autocast):
        expected = F.scaled_dot_product_attention(q, k, v).dtype
        output = relakit.attention(q, k, v, activation=activation, **options)
        with_weights = relakit.attention(
            q, k, v, activation=activation, need_weights=True, **options
        )
    assert output.dtype == expected
    assert all(tensor.dtype == expected for tensor in with_weights)
    output.float().sum().backward()
    assert all(tensor.grad.dtype == dtype for tensor in (q, k, v))
    assert _all_finite(q.grad, k.grad, v.grad)


@pytest.mark.parametrize("autocast", HALF, ids=str)
@every_activation
def test_autocast_leaves_float64_alone(
    activation: str, options: dict[str, Any], autocast: torch.dtype
) -> None:
    q, k, v = _tensors(torch.float64)
    expected = relakit.attention(q, k, v, activation=activation, **options)
    with torch.autocast("cpu", dtype=autocast):
        actual = relakit.attention(q, k, v, activation=activation, **options)
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("autocast", HALF, ids=str)
@pytest.mark.parametrize("name", relakit.ATTENTIONS)
def test_module_in_autocast(name: str, autocast: torch.dtype) -> None:
    module = _module(name, torch.float32)
    x = torch.randn(2, 7, DIM, requires_grad=True)
    padding = torch.arange(7) >= torch.tensor([[7], [0]])
    with torch.autocast("cpu", dtype=autocast):
        output, _ = module(x, x, x, key_padding_mask=padding)
        assert output.dtype == F.linear(x, module.out_proj.weight).dtype == autocast
    output.float().square().sum().backward()
    assert _all_finite(x.grad, *(p.grad for p in module.parameters()))
    assert all(p.grad.dtype == torch.float32 for p in module.parameters())
    assert torch.equal(output[1], module.out_proj.bias.to(autocast).expand_as(output[1]))
    exact = module(x, x, x, key_padding_mask=padding)[0]
    assert (output.float() - exact).abs().max() < 20 * torch.finfo(autocast).eps


@pytest.mark.parametrize("autocast", HALF, ids=str)
@pytest.mark.parametrize("name", relakit.ATTENTIONS)
def test_module_in_float64_and_autocast(name: str, autocast: torch.dtype) -> None:
    module = _module(name, torch.float64)
    x = torch.randn(2, 7, DIM, dtype=torch.float64)
    expected, weights = module(x, x, x)
    assert expected.dtype == weights.dtype == torch.float64
    with torch.autocast("cpu", dtype=autocast):
        actual = module(x, x, x)[0]
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("name", relakit.ATTENTIONS)
def test_float64_end_to_end(name: str) -> None:
    """A detour through float32 would leave differences of about 1e-7."""
    module = _module(name, torch.float64)
    x = torch.randn(2, 7, DIM, dtype=torch.float64)
    output = module(x, x, x)[0]
    order = torch.randperm(7)
    permuted = module(x, x[:, order], x[:, order])[0]
    torch.testing.assert_close(permuted, output, rtol=1e-12, atol=1e-12)
    assert module(x, x, x)[0].dtype == torch.float64


# Half precision: an error of at most twice that of plain PyTorch, both against float64.


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT * q.shape[-1] ** -0.5


PLAIN: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "softmax": F.scaled_dot_product_attention,
    "relu": lambda q, k, v: F.relu(_scores(q, k)) @ v,
    "gelu": lambda q, k, v: F.gelu(_scores(q, k)) @ v,
    "leaky_relu": lambda q, k, v: F.leaky_relu(_scores(q, k), 0.01) @ v,
    "sigmoid": lambda q, k, v: torch.sigmoid(_scores(q, k) - math.log(k.shape[-2])) @ v,
}


def _results(
    run: Callable[[Tensor, Tensor, Tensor], Tensor], tensors: list[Tensor], upstream: Tensor
) -> list[Tensor]:
    """Output and gradients."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    output = run(*leaves)
    return [output, *torch.autograd.grad(output, leaves, upstream)]


def _error(actual: Tensor, exact: Tensor) -> float:
    return float((actual.double() - exact).detach().norm() / exact.detach().norm())


@pytest.mark.parametrize(("queries", "keys"), [(63, 111), (7, 9)], ids=str)
@every_half
@pytest.mark.parametrize("activation", PLAIN)
def test_half_precision_error(activation: str, dtype: torch.dtype, queries: int, keys: int) -> None:
    def ours(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return relakit.attention(q, k, v, activation=activation)

    tensors = _tensors(dtype, queries, keys)
    upstream = torch.randn(2, 3, queries, 8).to(dtype)
    exact = _results(ours, [x.double() for x in tensors], upstream.double())
    plain = _results(PLAIN[activation], tensors, upstream)
    actual = _results(ours, tensors, upstream)
    for a, p, e in zip(actual, plain, exact, strict=True):
        assert _error(a, e) <= 2 * _error(p, e)


def _plain_rela_g(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
    """ReLA-g as one would write it in PyTorch."""
    projected = F.linear(x, parameters["in_proj_weight"], parameters["in_proj_bias"])
    q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in projected.chunk(3, -1))
    z = (F.relu(_scores(q, k)) @ v).transpose(1, 2).flatten(2)
    normed = F.rms_norm(z, z.shape[-1:], parameters["norm.weight"], 1e-8)
    z = torch.sigmoid(parameters["norm.gate"] * z) * normed
    return F.linear(z, parameters["out_proj.weight"], parameters["out_proj.bias"])


@every_half
def test_half_precision_error_of_the_module(dtype: torch.dtype) -> None:
    module = _module("rela-g", dtype)
    x = torch.randn(4, 63, DIM).to(dtype)
    with torch.no_grad():
        actual = module(x, x, x)[0]
        plain = _plain_rela_g(module.state_dict(), x)
        exact = module.double()(*3 * [x.double()])[0]
    assert _error(actual, exact) <= 2 * _error(plain, exact)


@every_half
@pytest.mark.parametrize("activation", ["sparsemax", "entmax15", "softpick"])
def test_half_precision_is_close_to_float64(activation: str, dtype: torch.dtype) -> None:
    q, k, v = _tensors(dtype, 63, 111)
    exact, exact_weights = relakit.attention(
        q.double(), k.double(), v.double(), activation=activation, need_weights=True
    )
    output, weights = relakit.attention(q, k, v, activation=activation, need_weights=True)
    assert _error(output, exact) < 2 * torch.finfo(dtype).eps
    assert _error(weights, exact_weights) < 2 * torch.finfo(dtype).eps


@pytest.mark.parametrize("size", [1e-4, 1.0])
@every_activation
def test_float32_is_close_to_float64(activation: str, options: dict[str, Any], size: float) -> None:
    """Small scores are where e^s - 1, a difference of two numbers near 1, would lose its digits."""
    tensors = _tensors(torch.float32)
    options = {"activation": activation, "scale": size, **options}
    output = relakit.attention(*tensors, **options)
    exact = relakit.attention(*(tensor.double() for tensor in tensors), **options)
    assert _error(output, exact) < 1e-5

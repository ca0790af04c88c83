"""torch.compile and torch.export, with dynamic shapes and masks."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import grad, jvp, vmap

import relakit
from relakit.ops.activations import ACTIVATIONS

EMBED, HEADS = 16, 4


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    """Each function is compiled once: other sizes have to fit what was compiled for the first."""
    torch._dynamo.reset()
    with torch._dynamo.config.patch(error_on_recompile=True):
        yield


def compile_strictly(function: Callable[..., Any]) -> Callable[..., Any]:
    """Without a C++ compiler run, so that the test tells about our code alone and is quick."""
    return torch.compile(function, fullgraph=True, backend="aot_eager")


def of_any_size(tensor: Tensor, *dims: int) -> Tensor:
    """Compilers must not take these dimensions for constants.

    Only those that differ between calls: with `dynamic=True`, for every dimension, compiling takes
    more than twice as long.
    """
    torch._dynamo.mark_dynamic(tensor, dims)
    return tensor


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_function_compiles(activation: str) -> None:
    def both(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        causal = relakit.attention(q, k, v, is_causal=True, activation=activation)
        biased = relakit.attention(q, k, v, mask, activation=activation, need_weights=True)
        return causal, *biased

    compiled = compile_strictly(both)
    for batch, length in ((2, 5), (3, 8)):
        inputs = [
            of_any_size(torch.randn(batch, HEADS, length, 8, requires_grad=True), 0, 2)
            for _ in range(3)
        ]
        mask = of_any_size(torch.rand(length, length) < 0.5, 0, 1)
        results, expected = compiled(*inputs, mask), both(*inputs, mask)
        torch.testing.assert_close(results, expected)
        torch.testing.assert_close(
            torch.autograd.grad(results[0].square().sum(), inputs),
            torch.autograd.grad(expected[0].square().sum(), inputs),
        )


def test_function_options_compile() -> None:
    def call(q: Tensor, k: Tensor, v: Tensor, threshold: Tensor) -> Tensor:
        grouped = relakit.attention(q, k[:, :2], v[:, :2], enable_gqa=True, power=2.0, scale=0.5)
        shifted = relakit.attention(q, k, v, threshold=threshold, length_exponent=1.0)
        return grouped + shifted

    compiled = compile_strictly(call)
    for length in (5, 8):
        q, k, v = (of_any_size(torch.randn(2, HEADS, length, 8), 2) for _ in range(3))
        threshold = torch.randn(HEADS)
        torch.testing.assert_close(compiled(q, k, v, threshold), call(q, k, v, threshold))


@pytest.mark.parametrize("name", relakit.ATTENTIONS)
def test_module_compiles(name: str) -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS, batch_first=True, attention=name)
    compiled = compile_strictly(module)
    for length in (5, 8):
        x = of_any_size(torch.randn(3, length, EMBED), 1)
        padding = of_any_size(torch.zeros(3, length, dtype=torch.bool), 1)
        padding[1, 3:] = True
        output, weights = compiled(x, x, x, key_padding_mask=padding)
        torch.testing.assert_close((output, weights), module(x, x, x, key_padding_mask=padding))
        output.sum().backward()
        assert module.in_proj_weight.grad.isfinite().all()


def test_module_with_every_addition_compiles() -> None:
    spec = relakit.AttentionSpec(threshold="learned", power=2.0, length_exponent=1.0)
    module = relakit.MultiheadAttention(
        EMBED, HEADS, kdim=6, vdim=7, add_bias_kv=True, add_zero_attn=True, attention=spec
    )
    compiled = compile_strictly(module)
    for length in (5, 8):
        inputs = [of_any_size(torch.randn(length, 3, size), 0) for size in (EMBED, 6, 7)]
        mask = of_any_size(torch.randn(length, length), 0, 1)
        torch.testing.assert_close(
            compiled(*inputs, attn_mask=mask), module(*inputs, attn_mask=mask)
        )


@pytest.mark.slow
def test_rela_g_compiles_to_native_code() -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS, batch_first=True)
    compiled = torch.compile(module, fullgraph=True, dynamic=True)  # every dimension
    for length in (5, 8):
        x = torch.randn(3, length, EMBED, requires_grad=True)
        output, expected = compiled(x, x, x)[0], module(x, x, x)[0]
        torch.testing.assert_close(output, expected)
        torch.testing.assert_close(
            torch.autograd.grad(output.square().sum(), x),
            torch.autograd.grad(expected.square().sum(), x),
        )


def test_converted_transformer_compiles() -> None:
    model = nn.Transformer(EMBED, HEADS, 1, 1, 32, dropout=0.0, batch_first=True)
    relakit.convert_attention(model)
    compiled = compile_strictly(model)
    for length in (5, 8):
        source = of_any_size(torch.randn(2, length, EMBED), 1)
        target = of_any_size(torch.randn(2, length + 1, EMBED), 1)
        torch.testing.assert_close(compiled(source, target), model(source, target))


@pytest.mark.parametrize("name", relakit.ATTENTIONS)
def test_module_exports_with_dynamic_length(name: str) -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS, batch_first=True, attention=name).eval()
    length = torch.export.Dim("length")
    x = torch.randn(2, 6, EMBED)
    exported = torch.export.export(module, (x, x, x), dynamic_shapes=({1: length},) * 3)
    x = torch.randn(2, 11, EMBED)
    torch.testing.assert_close(exported.module()(x, x, x), module(x, x, x))


def test_autocast_compiles() -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS, batch_first=True)
    compiled = compile_strictly(module)
    x = torch.randn(3, 5, EMBED)
    with torch.autocast("cpu", torch.bfloat16):
        output, expected = compiled(x, x, x)[0], module(x, x, x)[0]
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output, expected)


def slope(x: Tensor) -> Tensor:
    """A forward-mode derivative, by torch.func."""
    key, value = torch.linspace(-2, 3, 96).view(2, 1, 2, 6, 4)

    def attend(query: Tensor) -> Tensor:
        return relakit.attention(query, key, value)

    return jvp(attend, (x,), (torch.ones_like(x),))[1]


def test_forward_derivatives_compile() -> None:
    x = torch.linspace(-1, 2, 48).view(1, 2, 6, 4)
    assert slope(x).count_nonzero()
    torch.testing.assert_close(compile_strictly(slope)(x), slope(x))


def test_gradients_inside_compiled_code() -> None:
    key, value = torch.linspace(-2, 3, 96).view(2, 1, 2, 6, 4)
    gradient = grad(lambda query: relakit.attention(query, key, value).square().sum())
    x = torch.linspace(-1, 2, 96).view(2, 1, 2, 6, 4)
    torch.testing.assert_close(compile_strictly(gradient)(x[0]), gradient(x[0]))
    torch._dynamo.reset()
    torch.testing.assert_close(compile_strictly(vmap(gradient))(x), vmap(gradient)(x))


@torch._dynamo.config.patch(error_on_recompile=False)
def test_what_was_compiled_before_is_not_used_for_forward_derivatives() -> None:
    key, value = torch.linspace(-2, 3, 96).view(2, 1, 2, 6, 4)
    compiled = compile_strictly(lambda query: relakit.attention(query, key, value))
    x = torch.linspace(-1, 2, 48).view(1, 2, 6, 4)
    compiled(x)
    expected = slope(x)
    with forward_ad.dual_level():
        output = compiled(forward_ad.make_dual(x, torch.ones_like(x)))
        torch.testing.assert_close(forward_ad.unpack_dual(output).tangent, expected)

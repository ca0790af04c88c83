"""Norm kernels inside PyTorch: autograd, transforms, switches, and the modules that call them.

Their numbers are in test_norm_kernels.py.
"""

import native_extension  # noqa: F401  (skips without it)
import pytest
import torch
from norm_runs import make_norm, run, run_plain
from torch import Tensor, nn
from torch.autograd import forward_ad

import relakit
from relakit.ops.native.norm import norm_gradients

every_gating = pytest.mark.parametrize("is_gated", [True, False], ids=["gated", "plain"])


@pytest.mark.parametrize("feature_dims", [1, 2])
def test_second_derivatives(feature_dims: int) -> None:
    """Of the kernels in float32 against those of the formula in float64."""
    norm = make_norm(12)
    z = torch.randn(4, 12).unflatten(-1, (12,) if feature_dims == 1 else (3, 4))

    def penalty(output: Tensor, leaves: list[Tensor]) -> tuple[Tensor, ...]:
        gradients = torch.autograd.grad(output.square().sum(), leaves, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in gradients), leaves)

    leaves = [z.clone().requires_grad_(), *norm.parameters()]
    output = norm(leaves[0], heads_apart=feature_dims == 2)
    actual = penalty(output, leaves)

    exact_norm = make_norm(12, dtype=torch.float64)
    exact_norm.load_state_dict(norm.state_dict())
    leaves = [z.double().requires_grad_(), *exact_norm.parameters()]
    expected = penalty(exact_norm(leaves[0], heads_apart=feature_dims == 2), leaves)
    for x, y in zip(actual, expected, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-4)


@every_gating
def test_gradient_formula(is_gated: bool) -> None:
    """What second derivatives and transforms use, against automatic differentiation."""
    norm = make_norm(12, is_gated).double()
    z = torch.randn(3, 4, 12, dtype=torch.float64)
    upstream = torch.randn_like(z)
    _, *expected = run(norm, z, upstream=upstream)
    gate = norm.gate if is_gated else None
    actual = norm_gradients(upstream, z, norm.weight, gate, 1e-8, 1)
    for x, y in zip(actual, expected, strict=False):
        torch.testing.assert_close(x, y)


def test_batched_gradients() -> None:
    norm = make_norm(6)
    z = torch.randn(3, 6, requires_grad=True)
    vectors = torch.randn(4, 3, 6)
    (batched,) = torch.autograd.grad(norm(z), z, vectors, is_grads_batched=True)
    one_by_one = [torch.autograd.grad(norm(z), z, vector)[0] for vector in vectors]
    torch.testing.assert_close(batched, torch.stack(one_by_one))


def test_the_formula_is_used_where_kernels_cannot_be(calls: list[bool]) -> None:
    norm, z = make_norm(6), torch.randn(3, 6)
    expected = run_plain(norm, z, upstream=z)[0]
    torch.testing.assert_close(torch.func.vmap(norm)(z), expected)
    torch.testing.assert_close(torch.jit.trace(norm, z, check_trace=False)(z), expected)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(z, torch.ones_like(z))
        assert forward_ad.unpack_dual(norm(dual)).tangent is not None
    negative = torch.complex(z, -z).conj().imag
    assert negative.is_neg()
    torch.testing.assert_close(norm(negative), expected)
    for dtype in (torch.float64, torch.float16):
        assert make_norm(6)(z.to(dtype)).dtype == dtype
        make_norm(6).to(dtype)(z)
    assert not any(calls)


def test_environment_switches_it_off(monkeypatch: pytest.MonkeyPatch, calls: list[bool]) -> None:
    norm, z = make_norm(6), torch.randn(3, 6)
    norm(z)
    assert sum(calls) == 1
    monkeypatch.setenv("RELAKIT_BACKEND", "reference")
    norm(z)
    monkeypatch.setenv("RELAKIT_BACKEND", "")
    monkeypatch.setenv("RELAKIT_CPU_ISA", "sse9")
    norm(z)
    assert sum(calls) == 1


def test_heads_of_another_size() -> None:
    norm = make_norm(12)
    with pytest.raises(ValueError, match=r"12 features together, got shape \(5, 3, 5\)"):
        norm(torch.randn(5, 3, 5), heads_apart=True)
    with pytest.raises(ValueError, match=r"12 features together, got shape \(12,\)"):
        norm(torch.randn(12), heads_apart=True)


def test_module_with_a_norm_of_the_users() -> None:
    module = relakit.MultiheadAttention(24, 3, batch_first=True)
    module.norm = nn.LayerNorm(24)
    x = torch.randn(2, 5, 24)
    assert module(x, x, x)[0].shape == x.shape

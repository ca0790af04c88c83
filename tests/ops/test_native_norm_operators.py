"""The norm's C++ kernels as parts of PyTorch: operators, transforms, switches, and the module."""

import pytest
from norm_runs import make_norm, run, run_plain
from torch.autograd import forward_ad

import relakit
import torch
from relakit.ops.native import extension
from relakit.ops.native import norm as native_norm
from torch import Tensor, nn

try:
    ISAS = extension.load_extension().usable_isas()
except ImportError as error:
    pytest.skip(f"the C++ extension is not there: {error}", allow_module_level=True)

every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
every_gating = pytest.mark.parametrize("is_gated", [True, False], ids=["gated", "plain"])


@pytest.mark.parametrize("feature_dims", [1, 2])
@pytest.mark.parametrize("way", ["directly", "operator"])
def test_second_derivatives(way: str, feature_dims: int) -> None:
    """Of the kernels in float32 against those of the formula in float64."""
    norm = make_norm(12)
    z = torch.randn(4, 12).unflatten(-1, (12,) if feature_dims == 1 else (3, 4))

    def penalty(output: Tensor, leaves: list[Tensor]) -> tuple[Tensor, ...]:
        gradients = torch.autograd.grad(output.square().sum(), leaves, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in gradients), leaves)

    leaves = [z.clone().requires_grad_(), *norm.parameters()]
    if way == "directly":
        output = norm(leaves[0], heads_apart=feature_dims == 2)
    else:
        output, _ = torch.ops.relakit.gated_rms_norm(*leaves, norm.eps, feature_dims)
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
    actual = native_norm.plain_backward(upstream, z, norm.weight, gate, 1e-8, 1)
    for x, y in zip(actual, expected, strict=False):
        torch.testing.assert_close(x, y)


def test_batched_gradients() -> None:
    norm = make_norm(6)
    z = torch.randn(3, 6, requires_grad=True)
    vectors = torch.randn(4, 3, 6)
    (batched,) = torch.autograd.grad(norm(z), z, vectors, is_grads_batched=True)
    one_by_one = [torch.autograd.grad(norm(z), z, vector)[0] for vector in vectors]
    torch.testing.assert_close(batched, torch.stack(one_by_one))


def test_the_formula_is_used_where_kernels_cannot_be(calls: list[int]) -> None:
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
    assert not calls


def test_environment_switches_it_off(monkeypatch: pytest.MonkeyPatch, calls: list[int]) -> None:
    norm, z = make_norm(6), torch.randn(3, 6)
    norm(z)
    assert len(calls) == 1
    monkeypatch.setenv("RELAKIT_BACKEND", "reference")
    norm(z)
    monkeypatch.setenv("RELAKIT_BACKEND", "")
    monkeypatch.setenv("RELAKIT_CPU_ISA", "sse9")
    norm(z)
    assert len(calls) == 1


@pytest.mark.parametrize("feature_dims", [1, 2])
@every_dtype
@every_gating
def test_operators_are_well_formed(is_gated: bool, dtype: torch.dtype, feature_dims: int) -> None:
    z = torch.randn(2, 3, 5, 4).to(dtype).transpose(1, 2).requires_grad_()
    gain = torch.randn(z.shape[-feature_dims:].numel(), requires_grad=True)
    gate = gain.detach().to(dtype).requires_grad_() if is_gated else None
    torch.library.opcheck(
        torch.ops.relakit.gated_rms_norm.default, (z, gain, gate, 1e-8, feature_dims)
    )
    results = *torch.ops.relakit.gated_rms_norm(z, gain, gate, 1e-8, feature_dims), z, gain, gate
    torch.library.opcheck(
        torch.ops.relakit.gated_rms_norm_backward.default,
        (*(x if x is None else x.detach() for x in results), 1e-8, feature_dims),
    )


def test_operators_compile() -> None:
    def call(z: Tensor, gain: Tensor, gate: Tensor) -> Tensor:
        output: Tensor = torch.ops.relakit.gated_rms_norm(z, gain, gate, 1e-8, 2)[0]
        return output

    torch._dynamo.reset()
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="aot_eager")
    for length in (5, 8):
        leaves = [torch.randn(2, length, 3, 4), torch.randn(12), torch.randn(12)]
        leaves = [x.requires_grad_() for x in leaves]
        output, expected = compiled(*leaves), call(*leaves)
        torch.testing.assert_close(output, expected)
        upstream = torch.randn_like(output)
        torch.testing.assert_close(
            torch.autograd.grad(output, leaves, upstream),
            torch.autograd.grad(expected, leaves, upstream),
        )


BAD_CALLS = {
    "gain": ((torch.zeros(3, 6), torch.zeros(5), None, 1e-8, 1), r"6 features, got shape \(5,\)"),
    "gate": (
        (torch.zeros(3, 6), torch.zeros(6), torch.zeros(7), 1e-8, 1),
        r"gate .* 6 features, got shape \(7,\)",
    ),
    "dtype": ((torch.zeros(3, 6).double(), torch.zeros(6), None, 1e-8, 1), "float64"),
    "feature_dims": ((torch.zeros(6), torch.zeros(6), None, 1e-8, 2), r"got 2 for shape \(6,\)"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_calls_of_the_operator(case: str) -> None:
    arguments, message = BAD_CALLS[case]
    with pytest.raises(ValueError, match=message):
        torch.ops.relakit.gated_rms_norm(*arguments)


def test_bad_gradients_for_the_operator() -> None:
    x, gain = torch.zeros(3, 6), torch.zeros(6)
    with pytest.raises(ValueError, match=r"shape \(3, 6\) .* got \(3, 5\)"):
        torch.ops.relakit.gated_rms_norm_backward(
            torch.zeros(3, 5), torch.zeros(3), x, gain, None, 1e-8, 1
        )
    with pytest.raises(ValueError, match=r"shape \(3,\), got torch.float32 of shape \(2,\)"):
        torch.ops.relakit.gated_rms_norm_backward(x, torch.zeros(2), x, gain, None, 1e-8, 1)


def test_heads_of_another_size() -> None:
    norm = make_norm(12)
    with pytest.raises(ValueError, match=r"12 features together, got shape \(5, 3, 5\)"):
        norm(torch.randn(5, 3, 5), heads_apart=True)
    with pytest.raises(ValueError, match=r"12 features together, got shape \(12,\)"):
        norm(torch.randn(12), heads_apart=True)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("attention", ["rela-g", "rela-i"])
@every_dtype
def test_module_normalises_heads_where_they_are(
    calls: list[int], dtype: torch.dtype, attention: str, batch_first: bool
) -> None:
    module = relakit.MultiheadAttention(
        24, 3, batch_first=batch_first, attention=attention, dtype=dtype
    )
    x = torch.randn(5, 7, 24).to(dtype).requires_grad_()
    leaves = [x, *module.parameters()]
    output = module(x, x, x)[0]
    upstream = torch.randn_like(output)
    actual = [output, *torch.autograd.grad(output, leaves, upstream)]
    assert len(calls) == 1
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RELAKIT_BACKEND", "reference")
        output = module(x, x, x)[0]
        expected = [output, *torch.autograd.grad(output, leaves, upstream)]
    assert len(calls) == 1
    for a, e in zip(actual, expected, strict=True):
        scale = max(1.0, float(e.detach().float().abs().max()))
        tolerance = 1e-5 if dtype == torch.float32 else 2e-2
        torch.testing.assert_close(a, e, atol=tolerance * scale, rtol=0)


def test_module_with_a_norm_of_the_users() -> None:
    module = relakit.MultiheadAttention(24, 3, batch_first=True)
    module.norm = nn.LayerNorm(24)
    x = torch.randn(2, 5, 24)
    assert module(x, x, x)[0].shape == x.shape

"""The norms of equations 4 and 5 against the NumPy oracle, their starts, and vectors near zero."""

import math
from typing import Any

import numpy as np
import paper_numpy
import pytest
import torch
from torch import Tensor, nn

import relakit

NORMS = [relakit.RMSNorm, relakit.GatedRMSNorm, relakit.LayerNorm, relakit.GatedLayerNorm]
GATED = [relakit.GatedRMSNorm, relakit.GatedLayerNorm]
LAYER = [relakit.LayerNorm, relakit.GatedLayerNorm]
HALF = [torch.bfloat16, torch.float16]
LOW_PRECISION = [torch.float32, *HALF]

every_norm = pytest.mark.parametrize("norm", NORMS, ids=lambda norm: norm.__name__)


def _oracle(module: nn.Module, z: Tensor, eps: float = 1e-8) -> Tensor:
    """The norm of z in float64, with the module's parameters and the formula of its class."""
    parameters = {f"norm.{k}": v.double().numpy() for k, v in module.state_dict().items()}
    kind = "layer" if type(module) in LAYER else "rms"
    gate = type(module) in GATED
    array = z.detach().double().numpy()
    return torch.from_numpy(paper_numpy.normalise(parameters, array, kind, gate, eps))


def _randomised(norm: Any, dim: int, **options: Any) -> nn.Module:
    """No parameter at a value, such as 0 or 1, that hides it."""
    module = norm(dim, **options)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(dim))
    return module


@pytest.mark.parametrize("shape", [(7,), (3, 16), (2, 3, 5, 64), (4, 1)], ids=str)
@every_norm
def test_equals_the_oracle(norm: Any, shape: tuple[int, ...]) -> None:
    module = _randomised(norm, shape[-1], dtype=torch.float64)
    z = torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(module(z), _oracle(module, z), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("eps", [1e-8, 1e-2, 1.0])
@pytest.mark.parametrize("size", [1e-6, 1e-4, 1.0, 1e4])
@every_norm
def test_eps_is_inside_the_root(norm: Any, size: float, eps: float) -> None:
    module = _randomised(norm, 8, eps=eps, dtype=torch.float64)
    z = size * torch.randn(5, 8, dtype=torch.float64)
    torch.testing.assert_close(module(z), _oracle(module, z, eps), rtol=1e-10, atol=1e-14)


def test_rms_norm_and_layer_norm_equal_those_of_torch() -> None:
    z = torch.randn(5, 16, dtype=torch.float64)
    ours = _randomised(relakit.RMSNorm, 16, eps=1e-3, dtype=torch.float64)
    theirs: nn.Module = nn.RMSNorm(16, eps=1e-3, dtype=torch.float64)
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(z), theirs(z))
    ours = _randomised(relakit.LayerNorm, 16, eps=1e-3, dtype=torch.float64)
    theirs = nn.LayerNorm(16, eps=1e-3, dtype=torch.float64)
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(z), theirs(z))


@pytest.mark.parametrize("size", [1.0, 1e-3])
@every_norm
def test_gradients(norm: Any, size: float) -> None:
    module = _randomised(norm, 5, eps=1e-4, dtype=torch.float64)
    names = [name for name, _ in module.named_parameters()]
    z = (size * torch.randn(3, 5, dtype=torch.float64)).requires_grad_()

    def run(z: Tensor, *values: Tensor) -> Any:
        return torch.func.functional_call(module, dict(zip(names, values, strict=True)), (z,))

    assert torch.autograd.gradcheck(run, (z, *module.parameters()))


@every_norm
def test_parameters_and_how_they_start(norm: Any) -> None:
    module = norm(64)
    expected = {"weight"}
    if norm in GATED:
        expected.add("gate")
    if norm in LAYER:
        expected.add("bias")
    assert {name for name, _ in module.named_parameters()} == expected
    assert set(module.state_dict()) == expected
    assert all(parameter.shape == (64,) for parameter in module.parameters())
    assert (module.weight == 1).all()
    if norm in LAYER:
        assert (module.bias == 0).all()


def _assert_uniform(sample: Tensor, bound: float) -> None:
    """Uniform in [-bound, bound]: its limits, and its distribution function (Kolmogorov)."""
    assert sample.abs().max() <= bound
    x = np.sort(sample.detach().double().numpy())
    steps = np.arange(1, len(x) + 1) / len(x)
    distance = np.abs(steps - (x / bound + 1) / 2).max()
    assert distance < 1.95 / math.sqrt(len(x)), "less likely than 1 in 1,000"


@pytest.mark.parametrize("norm", GATED, ids=lambda norm: norm.__name__)
@pytest.mark.parametrize("dim", [512, 4096])
def test_gate_starts_uniform(norm: Any, dim: int) -> None:
    _assert_uniform(norm(dim).gate, math.sqrt(3 / dim))
    _assert_uniform(norm(dim, init="xavier", fan=8).gate, math.sqrt(3 / dim))


@pytest.mark.parametrize(("fan", "bound"), [(None, math.sqrt(3 / 512)), (64, math.sqrt(3 / 64))])
@every_norm
def test_xavier_gain_starts_uniform(norm: Any, fan: int | None, bound: float) -> None:
    _assert_uniform(norm(512, init="xavier", fan=fan).weight, bound)


@every_norm
def test_start_follows_the_seed(norm: Any) -> None:
    def start(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return torch.cat(list(norm(8, init="xavier").parameters()))

    assert torch.equal(start(1), start(1))
    assert not torch.equal(start(1), start(2))


@pytest.mark.parametrize("dtype", [torch.float64, *LOW_PRECISION], ids=str)
@pytest.mark.parametrize(
    "norm", [relakit.RMSNorm, relakit.GatedRMSNorm], ids=lambda norm: norm.__name__
)
def test_zero_vector_in_zero_out(norm: Any, dtype: torch.dtype) -> None:
    module = _randomised(norm, 16, dtype=dtype)
    assert (module(torch.zeros(3, 16, dtype=dtype)) == 0).all()


@pytest.mark.parametrize("dtype", [torch.float64, *LOW_PRECISION], ids=str)
@pytest.mark.parametrize("norm", LAYER, ids=lambda norm: norm.__name__)
def test_zero_vector_leaves_the_bias_of_layer_norm(norm: Any, dtype: torch.dtype) -> None:
    module = _randomised(norm, 16, dtype=dtype)
    share = 0.5 if norm in GATED else 1.0
    assert torch.equal(module(torch.zeros(16, dtype=dtype)), share * module.bias)


def _gradients(module: nn.Module, z: Tensor, upstream: Tensor) -> list[Tensor]:
    z = z.clone().requires_grad_()
    return list(torch.autograd.grad(module(z), [z, *module.parameters()], upstream))


@pytest.mark.parametrize("factor", [1, 100])
@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("dtype", LOW_PRECISION, ids=str)
@every_norm
def test_near_zero_vectors_stay_finite(
    norm: Any, dtype: torch.dtype, size: float, factor: int
) -> None:
    """The squares underflow in fp16, and the derivative is about 1 / sqrt(eps) = 10,000. What is
    beyond the largest number of fp16 may be inf; everything else is finite, nothing is NaN."""
    module = _randomised(norm, 64, dtype=dtype)
    z = (size * torch.randn(5, 64)).to(dtype)
    upstream = (factor * torch.randn(5, 64)).to(dtype)
    output = module(z)
    assert output.dtype == dtype
    assert output.isfinite().all()
    actual = _gradients(module, z, upstream)
    exact = _gradients(module.double(), z.double(), upstream.double())
    for gradient, expected in zip(actual, exact, strict=True):
        assert gradient.dtype == dtype
        assert not gradient.isnan().any()
        fits = expected.abs() < 0.99 * torch.finfo(dtype).max
        assert gradient[fits].isfinite().all()


@pytest.mark.parametrize("dtype", LOW_PRECISION, ids=str)
@every_norm
def test_gradients_at_zero_are_finite_from_the_start(norm: Any, dtype: torch.dtype) -> None:
    """With the parameters' first values and upstream gradients up to 1, fp16 is wide enough."""
    module = norm(64, dtype=dtype)
    upstream = (2 * torch.rand(5, 64) - 1).to(dtype)
    gradients = _gradients(module, torch.zeros(5, 64, dtype=dtype), upstream)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert gradients[0].abs().max() > 1000


@pytest.mark.parametrize("size", [1e-4, 1e-2, 1.0, 300.0])
@pytest.mark.parametrize("dtype", HALF, ids=str)
@every_norm
def test_half_precision_is_close_to_float64(norm: Any, dtype: torch.dtype, size: float) -> None:
    """From squares that underflow fp16 to squares that overflow it. The oracle gets the rounded
    numbers, so only the norm's own rounding is measured."""
    module = _randomised(norm, 64, dtype=dtype)
    z = (size * torch.randn(5, 64)).to(dtype)
    ulp = torch.finfo(dtype).eps
    with torch.no_grad():
        expected = _oracle(module, z)
        torch.testing.assert_close(module(z).double(), expected, rtol=2 * ulp, atol=2 * ulp)

    upstream = torch.randn(5, 64).to(dtype)
    actual = _gradients(module, z, upstream)
    expected_gradients = _gradients(module.double(), z.double(), upstream.double())
    for gradient, expected in zip(actual, expected_gradients, strict=True):
        error = (gradient.double() - expected).norm() / expected.norm()
        assert error < 4 * ulp


@every_norm
def test_autocast_keeps_the_norm_exact(norm: Any) -> None:
    module = _randomised(norm, 64)
    z = torch.randn(5, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = module(z)
    torch.testing.assert_close(output.double(), _oracle(module, z), rtol=1e-2, atol=1e-2)
    module, z = module.double(), z.double()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = module(z)
    assert torch.equal(output, module(z))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0,), {}, "dim"),
        ((-4,), {}, "dim"),
        ((4,), {"eps": -1e-8}, "eps"),
        ((4,), {"eps": math.nan}, "eps"),
        ((4,), {"eps": 0.0}, "eps must be a finite number of at least 1e-37, got 0"),
        ((4,), {"eps": 1e-38}, "eps must be a finite number of at least 1e-37, got 1e-38"),
        ((4,), {"init": "zeros"}, "zeros"),
        ((4,), {"init": "xavier", "fan": 0}, "fan"),
    ],
    ids=["dim=0", "dim<0", "eps<0", "eps=nan", "eps=0", "tiny eps", "init", "fan=0"],
)
@every_norm
def test_bad_arguments(
    norm: Any, arguments: tuple[int], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        norm(*arguments, **options)


@every_norm
def test_input_of_another_size(norm: Any) -> None:
    """A vector of size 1 would broadcast, silently."""
    for size in (1, 5):
        with pytest.raises(ValueError, match=rf"(?s)8.*{size}|{size}.*8"):
            norm(8)(torch.randn(3, size))

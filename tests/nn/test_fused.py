"""Attention and norm in one step, against the same in steps."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import relakit
from relakit.nn import fused
from relakit.ops.native import extension

if extension.why_unavailable():
    pytest.skip("the C++ extension is not there", allow_module_level=True)

KINDS = ["rela-g", "rela-i", "relu"]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each call of a module, whether it was served in one step."""
    served: list[bool] = []
    original = fused.in_one_step

    def watched(*args: Any) -> Any:
        result = original(*args)
        served.append(result is not None)
        return result

    monkeypatch.setattr(fused, "in_one_step", watched)
    return served


def make_module(attention: Any = "rela-g", **options: Any) -> relakit.MultiheadAttention:
    module = relakit.MultiheadAttention(24, 3, attention=attention, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def inputs(projections: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Query, key and value that a module projects into so many tensors."""
    query, key, value = (torch.randn(5, 7, 24).to(dtype).requires_grad_() for _ in range(3))
    return {1: [query] * 3, 2: [query, key, key], 3: [query, key, value]}[projections]


def results(module: nn.Module, tensors: list[Tensor], **options: Any) -> list[Tensor]:
    """Output, weights if wanted, and all gradients."""
    torch.manual_seed(1)
    output, weights = module(*tensors, **{"need_weights": False, **options})
    leaves = [*dict.fromkeys(tensors), *module.parameters()]
    upstream = torch.randn(output.shape, generator=torch.Generator().manual_seed(2))
    grads = torch.autograd.grad(output, leaves, upstream.to(output.dtype))
    return [output, *([] if weights is None else [weights]), *grads]


def in_steps(module: nn.Module, tensors: list[Tensor], **options: Any) -> list[Tensor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused, "in_one_step", lambda *_: None)
        return results(module, tensors, **options)


def assert_close(actual: list[Tensor], expected: list[Tensor], tolerance: float = 1e-5) -> None:
    for x, y in zip(actual, expected, strict=True):
        scale = max(1.0, float(y.detach().float().abs().max())) if y.numel() else 1.0
        torch.testing.assert_close(x / scale, y / scale, atol=tolerance, rtol=0)


@pytest.mark.parametrize("attention", KINDS)
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("projections", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_equals_the_steps(
    answers: list[bool], dtype: torch.dtype, projections: int, batch_first: bool, attention: str
) -> None:
    module = make_module(attention, batch_first=batch_first, dropout=0.3).to(dtype)
    tensors = inputs(projections, dtype)
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    for module_or_eval in (module.train(), module.eval()):
        actual = results(module_or_eval, tensors)
        assert_close(actual, in_steps(module_or_eval, tensors), tolerance)
    assert answers == [True, True]


@pytest.mark.parametrize("projections", [1, 2])
def test_the_output_is_the_same_to_the_bit(projections: int) -> None:
    module, tensors = make_module(batch_first=True, dropout=0.3), inputs(projections)
    assert torch.equal(results(module, tensors)[0], in_steps(module, tensors)[0])


OPTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "padding": lambda: {"key_padding_mask": torch.arange(7) > torch.arange(3, 8)[:, None]},
    "mask": lambda: {"attn_mask": torch.rand(7, 7) < 0.3},
    "bias of heads": lambda: {"attn_mask": torch.randn(15, 7, 7)},
    "causal": lambda: {
        "attn_mask": nn.Transformer.generate_square_subsequent_mask(7),
        "is_causal": True,
    },
    "weights": lambda: {"need_weights": True, "average_attn_weights": False},
    "mean weights": lambda: {"need_weights": True},
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options(answers: list[bool], case: str) -> None:
    module, tensors, options = make_module(batch_first=True), inputs(1), OPTIONS[case]()
    assert_close(results(module, tensors, **options), in_steps(module, tensors, **options))
    assert answers == [True]


def test_a_learned_threshold_and_a_power(answers: list[bool]) -> None:
    spec = relakit.AttentionSpec(threshold="learned", power=2.0)
    module, tensors = make_module(spec, batch_first=True), inputs(2)
    assert_close(results(module, tensors), in_steps(module, tensors))
    assert answers == [True]


def test_appended_keys_and_unbatched_input(answers: list[bool]) -> None:
    module = make_module(batch_first=True, add_bias_kv=True, add_zero_attn=True)
    tensors = [torch.randn(7, 24, requires_grad=True)] * 3
    assert_close(results(module, tensors), in_steps(module, tensors))
    assert answers == [True]


@pytest.mark.parametrize("positions", [(0, 4), (4, 0)], ids=["no queries", "no keys"])
def test_nothing_to_do(answers: list[bool], positions: tuple[int, int]) -> None:
    module = make_module(batch_first=True)
    query, key = (torch.randn(2, n, 24, requires_grad=True) for n in positions)
    assert_close(results(module, [query, key, key]), in_steps(module, [query, key, key]))
    assert answers == [True]


NOT_IN_ONE_STEP: dict[str, Callable[[relakit.MultiheadAttention], None]] = {
    "a hook on the norm": lambda m: void(m.norm.register_forward_hook(lambda *_: None)),
    "a norm of the user's": lambda m: setattr(m, "norm", nn.LayerNorm(24)),
    "a subclass of the norm": lambda m: setattr(
        m.norm, "__class__", type("Own", (type(m.norm),), {})
    ),
    "float64": lambda m: void(m.double()),
    "another backend": lambda m: setattr(m, "backend", "reference"),
}


def void(_: object) -> None:
    return None


@pytest.mark.parametrize("case", NOT_IN_ONE_STEP)
def test_goes_in_steps_with(answers: list[bool], case: str) -> None:
    module = make_module(batch_first=True)
    NOT_IN_ONE_STEP[case](module)
    x = torch.randn(2, 5, 24, dtype=module.in_proj_weight.dtype)
    assert module(x, x, x)[0].shape == x.shape
    assert answers == [False]


class Doubled(relakit.GatedRMSNorm):
    def forward(self, z: Tensor) -> Tensor:
        return 2 * super().forward(z)


def test_a_norm_with_a_forward_of_its_own() -> None:
    module = make_module(batch_first=True)
    own = make_module(batch_first=True)
    own.norm = Doubled(24)
    own.load_state_dict(module.state_dict())
    for each in (module, own):
        nn.init.zeros_(each.out_proj.bias)
    x = torch.randn(2, 5, 24)
    torch.testing.assert_close(own(x, x, x)[0], 2 * module(x, x, x)[0])


def test_hooks_on_the_norm_see_one_vector_per_position_and_change_nothing() -> None:
    module = make_module(batch_first=True)
    x = torch.randn(2, 5, 24)
    expected, _ = module(x, x, x)
    seen = []
    module.norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape))
    assert torch.equal(module(x, x, x)[0], expected)
    assert seen == [(2, 5, 24)]


def test_kinds_without_kernels_go_in_steps(answers: list[bool]) -> None:
    x = torch.randn(2, 5, 24)
    by_length = relakit.AttentionSpec(length_exponent=1.0)
    for attention in ("softmax", "rela-g-gelu", by_length, "rela-g-layernorm"):
        make_module(attention, batch_first=True)(x, x, x)
    assert answers == [False] * 4


class TestBackward:
    """What may stand between a call and its backward."""

    @pytest.fixture(params=["rela-g", "rela-i", "relu"])
    def module(self, request: pytest.FixtureRequest) -> nn.Module:
        return make_module(request.param, batch_first=True)

    @pytest.fixture(params=[1, 2, 3])
    def tensors(self, request: pytest.FixtureRequest) -> list[Tensor]:
        return inputs(request.param)

    def leaves(self, module: nn.Module, tensors: list[Tensor]) -> list[Tensor]:
        return [*dict.fromkeys(tensors), *module.parameters()]

    def test_second_derivatives(self, module: nn.Module, tensors: list[Tensor]) -> None:
        def twice() -> list[Tensor]:
            leaves = self.leaves(module, tensors)
            output = module(*tensors, need_weights=False)[0]
            grads = torch.autograd.grad(output.square().sum(), leaves, create_graph=True)
            total = sum((g.square().sum() for g in grads), torch.zeros(()))
            return list(torch.autograd.grad(total, leaves))

        actual = twice()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fused, "in_one_step", lambda *_: None)
            assert_close(actual, twice(), 1e-4)

    def test_a_mode_that_watches(self, module: nn.Module, tensors: list[Tensor]) -> None:
        leaves = self.leaves(module, tensors)
        module.dropout = 0.3
        output = module(*tensors, need_weights=False)[0]
        expected = torch.autograd.grad(output.sum(), leaves, retain_graph=True)
        with FlopCounterMode(display=False):
            assert_close(list(torch.autograd.grad(output.sum(), leaves)), list(expected))

    def test_batched_gradients(self, module: nn.Module, tensors: list[Tensor]) -> None:
        leaves = self.leaves(module, tensors)
        output = module(*tensors, need_weights=False)[0]
        vectors = torch.randn(3, *output.shape)
        batched = torch.autograd.grad(
            output, leaves, vectors, is_grads_batched=True, retain_graph=True
        )
        single = [torch.autograd.grad(output, leaves, x, retain_graph=True) for x in vectors]
        assert_close(list(batched), [torch.stack(x) for x in zip(*single, strict=True)])

    def test_saved_tensors_come_back_changed(
        self, module: nn.Module, tensors: list[Tensor]
    ) -> None:
        expected = results(module, tensors)
        with torch.autograd.graph.saved_tensors_hooks(
            lambda x: x.detach().clone(), lambda x: torch._neg_view(-x)
        ):
            assert_close(results(module, tensors), expected)

    def test_positions_first(self, module: nn.Module, tensors: list[Tensor]) -> None:
        module.batch_first = False
        leaves = self.leaves(module, tensors)
        output = module(*tensors, need_weights=False)[0]
        expected = torch.autograd.grad(output.sum(), leaves, retain_graph=True)
        with FlopCounterMode(display=False):
            assert_close(list(torch.autograd.grad(output.sum(), leaves)), list(expected))

    def test_a_gradient_at_the_weights(self, module: nn.Module, tensors: list[Tensor]) -> None:
        def run() -> list[Tensor]:
            output, weights = module(*tensors, average_attn_weights=False)
            loss = output.square().sum() + weights.square().sum()
            return list(torch.autograd.grad(loss, self.leaves(module, tensors)))

        actual = run()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fused, "in_one_step", lambda *_: None)
            patch.setenv("RELAKIT_BACKEND", "reference")
            assert_close(actual, run())


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("form", ["csr", "dense"])
def test_weights_have_no_form(form: str, window: int | None) -> None:
    module = make_module(batch_first=True, window=window)
    x = torch.randn(2, 5, 24)
    for mode in (torch.no_grad, torch.enable_grad):
        with mode(), pytest.raises(ValueError, match=f"must be True or False, got '{form}'"):
            module(x, x, x, need_weights=form)


def test_many_rows_are_kept_in_tensors() -> None:
    """Where bits and 1 / RMS are too many for bytes."""
    module = make_module(batch_first=True)
    x = torch.randn(4, 300, 24, requires_grad=True)
    assert_close(results(module, [x] * 3), in_steps(module, [x] * 3), 1e-4)


def test_a_captured_module_records_its_attention(answers: list[bool]) -> None:
    model = nn.Sequential(make_module(batch_first=True))
    x = torch.randn(2, 5, 24)
    with relakit.capture(model) as records:
        _, weights = model[0](x, x, x, average_attn_weights=False)
    torch.testing.assert_close(records["0"][0].weights, weights)
    assert answers == [False]

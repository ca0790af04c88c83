"""The tensors of a case: shapes, zeros as wanted, the same every time."""

import pytest
import torch

from relakit.bench import inputs as bench_inputs
from relakit.bench.cases import MODES, Case, make_case
from relakit.bench.inputs import DEMO_FILE, Inputs, make_inputs, measure_zeros
from relakit.ops.attention import attention


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("zeros", [50.0, "demo"])
def test_shapes_and_types(mode: str, zeros: float | str) -> None:
    case = make_case(mode, 63, zeros, dtype="bfloat16", heads=11, dim=24, batch=2)
    made = make_inputs(case)
    assert made.query.shape == (2, 11, case.queries, case.dim)
    assert made.key.shape == made.value.shape == (2, 11, 63, case.dim)
    assert made.query.dtype == made.key.dtype == made.value.dtype == torch.bfloat16
    assert made.query.requires_grad == made.value.requires_grad == case.has_backward
    assert (made.grad_output is not None) == case.has_backward


@pytest.mark.parametrize("zeros", [90.0, "demo"])
def test_the_same_every_time(zeros: float | str) -> None:
    case = make_case("forward", 32, zeros)
    assert torch.equal(make_inputs(case).key, make_inputs(case).key)
    assert not torch.equal(make_inputs(case).key, make_inputs(case, seed=1).key)


def test_the_two_modes_of_a_shape_have_the_same_tensors() -> None:
    forward, both = (make_inputs(make_case(mode, 32, 90.0)) for mode in ("forward", "both"))
    assert torch.equal(forward.query, both.query)
    assert torch.equal(forward.value, both.value)


@pytest.mark.parametrize("mode", ["forward", "causal-forward", "decode"])
@pytest.mark.parametrize("wanted", [50.0, 80.0, 90.0, 95.0])
def test_zeros_are_as_wanted(mode: str, wanted: float) -> None:
    batch = 200 if mode == "decode" else 2
    made = make_inputs(make_case(mode, 256, wanted, batch=batch))
    assert 100 * measure_zeros(made) == pytest.approx(wanted, abs=1.0)


def test_no_zeros_and_nothing_but_zeros() -> None:
    assert measure_zeros(make_inputs(make_case("forward", 64, 0.0))) == 0
    assert measure_zeros(make_inputs(make_case("forward", 64, 100.0))) == 1


def weights_of(made: Inputs) -> torch.Tensor:
    return attention(
        made.query,
        made.key,
        made.value,
        made.mask,
        is_causal=made.is_causal,
        threshold=made.threshold,
        need_weights=True,
    )[1]


@pytest.mark.parametrize("mask", ["none", "padding", "additive"])
@pytest.mark.parametrize("chunk", [1, 100 * 63 * 3, 2**22])
def test_zeros_are_counted_exactly(mask: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces of any size, and without what is masked."""
    monkeypatch.setattr(bench_inputs, "CHUNK", chunk)
    made = make_inputs(make_case("forward", 63, 60.0, heads=3, batch=2, mask=mask))
    weights = weights_of(made)
    counted = torch.ones_like(weights, dtype=torch.bool)
    if mask == "padding":
        assert made.mask is not None
        assert not made.mask.all(), "a mask that hides nothing"
        counted = made.mask.expand_as(weights)
    assert measure_zeros(made) == pytest.approx(float((weights == 0)[counted].double().mean()))


def test_zeros_are_counted_below_the_diagonal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_inputs, "CHUNK", 5 * 63 * 3)
    made = make_inputs(make_case("causal-forward", 63, 60.0, heads=3, batch=2))
    weights = weights_of(made)
    seen = torch.ones(63, 63, dtype=torch.bool).tril().expand_as(weights)
    assert measure_zeros(made) == pytest.approx(float((weights == 0)[seen].double().mean()))


class TestDemo:
    def test_the_file_is_small(self) -> None:
        assert DEMO_FILE.stat().st_size < 300_000

    @pytest.mark.parametrize("mode", ["forward", "causal-forward", "decode"])
    def test_a_trained_model_is_sparse_without_a_threshold(self, mode: str) -> None:
        made = make_inputs(make_case(mode, 256, "demo", batch=8))
        assert made.threshold == 0
        assert 0.2 < measure_zeros(made) < 0.9

    def test_key_and_value_stay_together(self) -> None:
        """Equal keys of a head have equal values."""
        made = make_inputs(make_case("forward", 300, "demo", batch=1))
        keys, values = made.key[0, 0], made.value[0, 0]
        same = (keys[:, None] == keys).all(-1)
        assert same.sum() > 300, "with 300 draws from 96 rows some come twice"
        first, second = same.nonzero(as_tuple=True)
        assert torch.equal(values[first], values[second])


def test_a_padding_mask_leaves_at_least_half() -> None:
    case = Case(mode="forward", length=63, zeros=50.0, batch=20, mask="padding")
    mask = make_inputs(case).mask
    assert mask is not None
    assert mask.sum(-1).min() >= 32

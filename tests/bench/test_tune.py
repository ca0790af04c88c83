"""Thresholds from comparisons, and setting them for a while."""

import pytest
import torch

import relakit
from relakit.bench.attention_results import AttentionSettings
from relakit.bench.tune import Thresholds, crossing, first_to_pay, thresholds_set, tune
from relakit.ops.native import extension

try:
    NATIVE = extension.load_extension()
except ImportError as error:
    pytest.skip(f"the C++ extension is not there: {error}", allow_module_level=True)


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ((0.5, 0.5, 0.5), 1.0),
        ((1.5, 1.5, 1.5), 0.0),
        ((0.5, 0.8, 1.2), 0.6),
        ((0.5, 1.1, 1.2), 0.2 + 0.3 * 5 / 6),
        ((1.1, 0.9, 1.1), 0.6),  # above it the second way is always faster
    ],
)
def test_crossing(ratios: tuple[float, ...], expected: float) -> None:
    assert crossing((0.2, 0.5, 0.7), ratios) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [((0.9, 0.8), 64), ((1.1, 0.8), 128), ((0.9, 1.1), 256), ((1.0, 1.0), 256)],
)
def test_first_to_pay(ratios: tuple[float, ...], expected: int) -> None:
    assert first_to_pay((64, 128), ratios) == expected


def test_shares_are_checked() -> None:
    isa = NATIVE.chosen_isa()
    values = NATIVE.attention_thresholds(isa, "float32")
    with pytest.raises(ValueError, match=r"shares from 0 to 1, got 1\.5"):
        NATIVE.set_attention_thresholds(isa, "float32", **{**values, "most_candidates": 1.5})
    with pytest.raises(ValueError, match="for float32 and bfloat16, not 'int8'"):
        NATIVE.set_attention_thresholds(isa, "int8", **values)


WAYS = {
    "dense": Thresholds(
        dense_forward=0.0,
        dense_backward=0.0,
        most_candidates=0.0,
        least_to_screen=1,
        most_to_fetch=0.0,
    ),
    "lists": Thresholds(
        dense_forward=1.0,
        dense_backward=1.0,
        most_candidates=0.0,
        least_to_screen=1,
        most_to_fetch=1.0,
    ),
    "screening": Thresholds(
        dense_forward=1.0,
        dense_backward=1.0,
        most_candidates=1.0,
        least_to_screen=1,
        most_to_fetch=0.4,
    ),
}


@pytest.mark.parametrize("isa", NATIVE.usable_isas())
@pytest.mark.parametrize("shift", [-0.5, 0.0, 1.3])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_way_has_the_same_result(
    isa: str, shift: float, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAKIT_CPU_ISA", isa)
    before = NATIVE.attention_thresholds(isa, dtype)
    torch.manual_seed(0)
    inputs = [torch.randn(1, 2, 150, 64).to(getattr(torch, dtype)) for _ in range(4)]

    def gradients(backend: str, *tensors: torch.Tensor) -> list[torch.Tensor]:
        *leaves, upstream = tensors
        leaves = [x.detach().requires_grad_() for x in leaves]
        output = relakit.attention(*leaves, threshold=shift, backend=backend)
        return [output, *torch.autograd.grad(output, leaves, upstream)]

    expected = gradients("reference", *(x.float() for x in inputs))
    # In bfloat16, results alone are rounded.
    tolerance = {"atol": 2e-4, "rtol": 1e-4} if dtype == "float32" else {"atol": 1e-3, "rtol": 5e-3}
    for values in WAYS.values():
        with thresholds_set(isa, dtype, values):
            assert NATIVE.attention_thresholds(isa, dtype) == pytest.approx(vars(values))
            found = gradients("native", *inputs)
        for x, y in zip(found, expected, strict=True):
            torch.testing.assert_close(x.float(), y, **tolerance)
    assert NATIVE.attention_thresholds(isa, dtype) == before


@pytest.mark.parametrize("isa", NATIVE.usable_isas())
def test_values_that_are_fetched_ahead_of_time_change_nothing(
    isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAKIT_CPU_ISA", isa)
    torch.manual_seed(0)
    query = torch.randn(1, 2, 3, 64)
    key, value = torch.randn(2, 1, 2, 700, 64)
    found = []
    for values in WAYS.values():
        with thresholds_set(isa, "float32", values):
            found.append(relakit.attention(query, key, value, backend="native"))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_screening_is_not_compared_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAKIT_CPU_ISA", "portable")
    assert not NATIVE.has_screening("portable")
    settings = AttentionSettings(rounds=1, threads=1)
    tuning = tune(settings, length=32, heads=1, dim=16, batch=1, tell=lambda _: None)
    assert [x.threshold for x in tuning.comparisons] == [
        "dense_forward",
        "dense_backward",
        "most_to_fetch",
    ]
    assert tuning.best.least_to_screen == tuning.built_in.least_to_screen


@pytest.mark.parametrize("isa", NATIVE.usable_isas())
def test_fetching_is_compared_only_where_something_is_fetched(
    isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAKIT_CPU_ISA", isa)
    monkeypatch.setattr("relakit.bench.tune.PRODUCT_SIZES", (32,))
    monkeypatch.setattr("relakit.bench.tune.NONZEROS", (10, 90))
    settings = AttentionSettings(rounds=1, threads=1)
    width = NATIVE.vector_width(isa)
    for dim, expected in ((width, True), (width + 1, False)):
        tuning = tune(settings, length=16, heads=1, dim=dim, batch=1)
        compared = [x.threshold for x in tuning.comparisons]
        assert ("most_to_fetch" in compared) is expected
    assert tuning.best.most_to_fetch == tuning.built_in.most_to_fetch

"""Whether ReLA is faster here: what is measured, and what numbers mean in words."""

import pytest

from relakit.bench.rounds import Spread
from relakit.cli import doctor_speed
from relakit.cli.doctor_speed import SpeedCase, judge, measure_speed


def case(ratio: float, zeros: float | None = 50.0, width: float = 0.01) -> SpeedCase:
    spread = Spread(ratio, ratio * (1 - width), ratio * (1 + width))
    return SpeedCase(what=f"case {ratio}", zeros=zeros, ratio=spread)


def test_faster_everywhere() -> None:
    verdict = judge([case(1.2), case(2.5, 90.0)], "avx2")
    assert verdict.sentence == (
        "ReLA is faster than softmax on this machine: 1.20 to 2.50 times its speed."
    )
    assert verdict.reasons == []


def test_no_difference_that_anybody_would_notice() -> None:
    verdict = judge([case(0.98), case(1.3)], "avx512")
    assert verdict.sentence.startswith("ReLA is as fast as softmax, or faster, on this machine")


def test_slower_somewhere() -> None:
    verdict = judge([case(0.9, 49.9), case(1.5, 90.0)], "avx2")
    assert verdict.sentence == (
        "ReLA is slower than softmax in 1 of 2 cases: case 0.9 at 50% zeros (0.90)."
    )
    assert "half of the weights are few" in verdict.reasons[0]


def test_slower_everywhere_without_vectors() -> None:
    verdict = judge([case(0.5), case(0.6)], "portable")
    assert verdict.sentence == (
        "ReLA is slower than softmax on this machine: 0.50 to 0.60 times its speed."
    )
    assert "no vector instructions" in verdict.reasons[0]


def test_a_busy_machine() -> None:
    verdict = judge([case(1.5), case(1.6, width=0.4)], "avx2")
    assert "measure again" in verdict.reasons[0]


def test_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_speed, "why_kernels_cannot_run", lambda: ["not compiled"])
    verdict = measure_speed()
    assert verdict.cases == []
    assert verdict.sentence == "Nothing was measured: ReLA's kernels cannot run on this machine."
    assert verdict.reasons == ["not compiled"]


def test_all_cases_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    if problems := doctor_speed.why_kernels_cannot_run():
        pytest.skip(f"the kernels cannot run: {problems[0]}")
    monkeypatch.setattr(doctor_speed, "SECONDS", 1e-6)
    monkeypatch.setattr(doctor_speed, "TRANSLATION_SECONDS", 1e-6)
    monkeypatch.setattr(doctor_speed, "SIZE", "tiny")
    monkeypatch.setattr(doctor_speed, "VOCABULARY", 50)
    monkeypatch.setattr(doctor_speed, "CASES", (("both passes", "both", 16), ("one", "decode", 16)))
    told: list[str] = []
    verdict = measure_speed(told.append)
    assert told == [
        *["both passes"] * 2,
        *["one"] * 2,
        "translation, float32, beam 4",
        "translation, int8, beam 4",
    ]
    assert [case.what for case in verdict.cases] == told
    assert all(case.ratio.median > 0 for case in verdict.cases)
    zeros = [case.zeros for case in verdict.cases]
    assert zeros[0] is not None
    assert zeros[1] is not None
    assert zeros[0] < zeros[1]

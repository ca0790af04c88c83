"""Turns: everyone once a round, in an order that moves on; who fails is noted, not forgotten."""

import gc

import pytest

from relakit.bench.turns import (
    CaseTurns,
    Contender,
    ContenderError,
    Field,
    Runner,
    Turn,
    baseline_of,
    take_turns,
)


class Recorded:
    """Takes `seconds` for 10 tokens and fails in the round `fails_in`."""

    def __init__(
        self, name: str, calls: list[str], *, seconds: float = 1.0, fails_in: int | None = None
    ) -> None:
        self.name = name
        self.calls = calls
        self.seconds = seconds
        self.fails_in = fails_in

    def warm_up(self, case: str) -> None:
        self.calls.append(f"warm {self.name}")

    def run(self, case: str, number: int) -> Turn:
        assert not gc.isenabled()
        if number == self.fails_in:
            raise ContenderError("tired")
        self.calls.append(f"{number} {self.name}")
        return Turn(seconds=self.seconds, target_tokens=10, sentences=2)


def field_of(**runners: Runner) -> Field:
    contenders = [Contender(system=n, attention="softmax", precision="fp32") for n in runners]
    return Field(contenders, runners=dict(runners))


def test_order_and_warm_up() -> None:
    calls: list[str] = []
    field = field_of(a=Recorded("a", calls), b=Recorded("b", calls), c=Recorded("c", calls))
    results, saved = CaseTurns("x"), []
    take_turns(field, results, rounds=2, after_round=lambda: saved.append(len(results.rounds)))
    assert calls == ["warm a", "warm b", "warm c", "0 a", "0 b", "0 c", "1 b", "1 c", "1 a"]
    assert saved == [1, 2]
    assert [list(turns) for turns in results.rounds] == [["a", "b", "c"]] * 2
    assert gc.isenabled()


def test_an_earlier_run_goes_on() -> None:
    calls: list[str] = []
    field = field_of(a=Recorded("a", calls))
    turn = Turn(seconds=1.0, target_tokens=1, sentences=1)
    results = CaseTurns("x", rounds=[{"a": turn}])
    take_turns(field, results, rounds=2)
    assert calls == ["warm a", "1 a"]
    take_turns(field, results, rounds=2)
    assert calls == ["warm a", "1 a"], "nothing is left to do, not even a warm-up"


def test_who_fails_is_noted_and_the_others_go_on() -> None:
    calls: list[str] = []
    field = field_of(a=Recorded("a", calls, fails_in=1), b=Recorded("b", calls))
    results = CaseTurns("x")
    take_turns(field, results, rounds=3)
    assert field.notes == {"a": "tired"}
    assert [sorted(turns) for turns in results.rounds] == [["a", "b"], ["b"], ["b"]]
    assert len(results.of("a")) == 1


def test_only_some_take_part() -> None:
    calls: list[str] = []
    field = field_of(a=Recorded("a", calls), b=Recorded("b", calls))
    take_turns(field, CaseTurns("x"), rounds=1, only=lambda label: label == "b")
    assert calls == ["warm b", "0 b"]


def test_a_contender_that_cannot_be_made_ready() -> None:
    [contender] = field_of(a=Recorded("a", [])).contenders
    field = Field([contender])

    def fail() -> tuple[Runner, str]:
        raise ContenderError("not installed")

    field.prepare(contender, fail)
    assert field.notes == {"a fp32": "not installed"}
    field.prepare(contender, lambda: (Recorded("a", []), "a 1.0"))
    assert field.notes == {}
    assert field.about == {"a fp32": "a 1.0"}


def test_ratios_are_of_one_round() -> None:
    def turns(a: float, b: float | None) -> dict[str, Turn]:
        made = {"a": Turn(seconds=a, target_tokens=10, sentences=1)}
        if b is not None:
            made["b"] = Turn(seconds=b, target_tokens=20, sentences=1)
        return made

    case = CaseTurns("x", rounds=[turns(1.0, 1.0), turns(10.0, 5.0), turns(3.0, None)])
    assert case.ratios("b", "a") == [2.0, 4.0]
    spread = case.ratio("b", "a")
    assert spread is not None
    assert spread.median == 3.0
    assert case.ratio("b", "c") is None


@pytest.mark.parametrize(
    ("precision", "expected"), [("bf16", "softmax bf16"), ("int8", "softmax fp32")]
)
def test_baseline(precision: str, expected: str) -> None:
    ours = [
        Contender(system="relakit", attention=attention, precision=own)
        for own in ("fp32", "bf16")
        for attention in ("rela-g", "softmax")
    ]
    peer = Contender(system="ctranslate2", attention="softmax", precision=precision)
    assert peer.label == f"ctranslate2 {precision}"
    found = baseline_of(peer, [*ours, peer])
    assert found is not None
    assert found.label == expected
    assert baseline_of(peer, [peer]) is None

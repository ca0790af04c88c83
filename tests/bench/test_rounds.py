"""Rounds: everyone once, in an order that moves on; whoever fails is noted, not forgotten."""

import gc
from collections.abc import Callable

import pytest

from relakit.bench import rounds
from relakit.bench.rounds import (
    Budget,
    CaseRounds,
    Contender,
    ContenderError,
    Field,
    FixedRounds,
    RepeatedCall,
    Turn,
    seconds_per_call,
    spread,
    take_turns,
)


class Recorded:
    """Takes a second for 10 tokens and fails in the round `fails_in`."""

    def __init__(self, name: str, calls: list[str], *, fails_in: int | None = None) -> None:
        self.name = name
        self.calls = calls
        self.fails_in = fails_in

    def warm_up(self, case: str) -> None:
        self.calls.append(f"warm {self.name}")

    def run(self, case: str, number: int) -> Turn:
        assert not gc.isenabled()
        if number == self.fails_in:
            raise ContenderError("tired")
        self.calls.append(f"{number} {self.name}")
        return Turn(1.0, {"tokens": 10})


class TestTakeTurns:
    def test_order_and_warm_up(self) -> None:
        calls: list[str] = []
        field = Field({name: Recorded(name, calls) for name in "abc"})
        case, saved = CaseRounds("x"), []
        take_turns(field, case, FixedRounds(2), after_round=lambda: saved.append(len(case.rounds)))
        assert calls == ["warm a", "warm b", "warm c", "0 a", "0 b", "0 c", "1 b", "1 c", "1 a"]
        assert saved == [1, 2]
        assert [list(turns) for turns in case.rounds] == [["a", "b", "c"]] * 2
        assert gc.isenabled()

    def test_an_earlier_run_goes_on(self) -> None:
        calls: list[str] = []
        field = Field({"a": Recorded("a", calls)})
        case = CaseRounds("x", [{"a": Turn(1.0, {"tokens": 1})}])
        take_turns(field, case, FixedRounds(2))
        assert calls == ["warm a", "1 a"]
        take_turns(field, case, FixedRounds(2))
        assert calls == ["warm a", "1 a"], "nothing is left to do, not even a warm-up"

    def test_whoever_fails_is_noted_and_the_others_go_on(self) -> None:
        calls: list[str] = []
        field = Field({"a": Recorded("a", calls, fails_in=1), "b": Recorded("b", calls)})
        case = CaseRounds("x")
        take_turns(field, case, FixedRounds(3))
        assert field.notes == {"a": "tired"}
        assert [sorted(turns) for turns in case.rounds] == [["a", "b"], ["b"], ["b"]]
        assert len(case.of("a")) == 1

    def test_only_some_take_part(self) -> None:
        calls: list[str] = []
        field = Field({name: Recorded(name, calls) for name in "ab"})
        take_turns(field, CaseRounds("x"), FixedRounds(1), only=lambda label: label == "b")
        assert calls == ["warm b", "0 b"]

    def test_progress_is_told(self) -> None:
        told: list[str] = []
        field = Field({"a": Recorded("a", [])})
        take_turns(field, CaseRounds("x"), FixedRounds(2), tell=told.append)
        assert told == ["x, warm-up: a", "x, round 1 of 2: a", "x, round 2 of 2: a"]


def test_a_contender_that_cannot_be_made_ready() -> None:
    field = Field()

    def fail() -> tuple[Contender, str]:
        raise ContenderError("not installed")

    field.enter("a", fail)
    assert field.notes == {"a": "not installed"}
    field.enter("a", lambda: (Recorded("a", []), "a 1.0"))
    assert field.notes == {}
    assert field.about == {"a": "a 1.0"}


class Stage:
    """Calls that take a given time on a clock of their own, and write down that they ran."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[str] = []

    def call(self, name: str, *seconds: float) -> Callable[[], None]:
        """A call that takes these times in turn; the last one from then on."""
        left = list(seconds)

        def run() -> None:
            self.log.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return run

    def times(
        self, *, rounds: int | None, seconds: float = 1.0, **calls: Callable[[], None]
    ) -> dict[str, list[float | None]]:
        """Seconds per call, round by round; None where a call sat the round out."""
        field = Field({name: RepeatedCall(call, lambda: self.now) for name, call in calls.items()})
        case = CaseRounds("x")
        take_turns(field, case, Budget(rounds, seconds))
        return {
            name: [
                seconds_per_call(turns[name]) if name in turns else None for turns in case.rounds
            ]
            for name in calls
        }


class TestRepeatedCalls:
    def test_every_round_runs_everybody_and_the_order_rotates(self) -> None:
        stage = Stage()
        times = stage.times(rounds=4, **{name: stage.call(name, 0.5) for name in "abc"})
        assert "".join(stage.log) == "abc" + "abc" + "bca" + "cab" + "abc"  # a warm-up first
        assert times == {name: pytest.approx([0.5] * 4) for name in "abc"}

    def test_first_time_costs_are_not_timed(self) -> None:
        stage = Stage()
        times = stage.times(rounds=2, a=stage.call("a", 0.05, 0.001), b=stage.call("b", 0.001))
        assert times["a"] == pytest.approx([0.001, 0.001])

    def test_fast_calls_are_repeated(self) -> None:
        stage = Stage()
        fast = rounds.SHORTEST_BLOCK / 10
        times = stage.times(rounds=2, a=stage.call("a", fast), b=stage.call("b", 0.01))
        assert stage.log.count("a") == 3 + 2 * 10
        assert stage.log.count("b") == 3 + 2
        assert times["a"] == pytest.approx([fast] * 2)


class TestBudget:
    def test_slow_calls_run_in_the_first_rounds_only(self) -> None:
        stage = Stage()
        calls = {"a": stage.call("a", 0.2), "b": stage.call("b", 0.2), "c": stage.call("c", 9.0)}
        times = stage.times(rounds=5, **calls)
        assert times["c"] == [pytest.approx(9.0), pytest.approx(9.0), None, None, None]
        assert times["a"] == pytest.approx([0.2] * 5)

    def test_one_round_is_one_round_for_slow_calls_too(self) -> None:
        stage = Stage()
        times = stage.times(rounds=1, a=stage.call("a", 9.0), b=stage.call("b", 9.0))
        assert times == {"a": [pytest.approx(9.0)], "b": [pytest.approx(9.0)]}

    def test_a_budget_is_shared_out(self) -> None:
        """A call that takes ten times as long gets a tenth of the rounds; the others go on."""
        stage = Stage()
        calls = {"a": stage.call("a", 0.01), "b": stage.call("b", 0.01), "c": stage.call("c", 0.1)}
        times = stage.times(rounds=None, seconds=3.0, **calls)
        ran = {name: sum(t is not None for t in values) for name, values in times.items()}
        assert ran["a"] == ran["b"] == pytest.approx(100, abs=1)
        assert ran["c"] == pytest.approx(10, abs=1)

    def test_some_rounds_are_run_however_small_the_budget(self) -> None:
        stage = Stage()
        calls = {"a": stage.call("a", 0.5), "b": stage.call("b", 0.5)}
        times = stage.times(rounds=None, seconds=1e-6, **calls)
        assert len(times["a"]) == rounds.FEWEST_ROUNDS


class TestRatios:
    def test_they_are_of_one_round(self) -> None:
        """A machine that is half as fast in one round changes no ratio."""
        times = [(3.0, 1.0), (6.0, 2.0), (None, 1.0), (3.0, None)]
        case = CaseRounds(
            "x",
            [
                {n: Turn(t, {"calls": 1}) for n, t in zip("ab", pair, strict=True) if t is not None}
                for pair in times
            ],
        )
        found = case.ratio("a", "b", seconds_per_call)
        assert found == spread([3.0, 3.0])

    def test_of_amounts_of_work(self) -> None:
        def turns(a: float, b: float | None) -> dict[str, Turn]:
            made = {"a": Turn(a, {"tokens": 10})}
            if b is not None:
                made["b"] = Turn(b, {"tokens": 20})
            return made

        case = CaseRounds("x", [turns(1.0, 1.0), turns(10.0, 5.0), turns(3.0, None)])
        found = case.ratio("b", "a", lambda turn: turn.per_second("tokens"))
        assert found == spread([2.0, 4.0])
        assert found is not None
        assert found.median == 3.0
        assert case.ratio("b", "c", lambda turn: turn.seconds) is None
        assert case.values("c", lambda turn: turn.seconds) is None


def test_spread() -> None:
    found = spread([5.0, 1.0, 3.0, 2.0, 4.0])
    assert (found.lower, found.median, found.upper) == (2.0, 3.0, 4.0)
    assert spread([1.0, 2.0]).median == 1.5
    assert spread([7.0]).upper == 7.0

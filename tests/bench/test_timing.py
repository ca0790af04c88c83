"""Interleaved timing, with a clock that the steps themselves move."""

from collections.abc import Callable

import pytest

from relakit.bench import timing
from relakit.bench.timing import ratios, spread, time_interleaved


class Stage:
    """Steps that take a given time and write down that they ran."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[str] = []

    def clock(self) -> float:
        return self.now

    def step(self, name: str, *seconds: float) -> Callable[[], None]:
        """A step that takes these times in turn; the last one from then on."""
        left = list(seconds)

        def run() -> None:
            self.log.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return run


def test_every_round_runs_everybody_and_the_order_rotates() -> None:
    stage = Stage()
    steps = {name: stage.step(name, 0.5) for name in "abc"}
    times = time_interleaved(steps, rounds=4, seconds=1.0, clock=stage.clock)
    assert "".join(stage.log) == "abc" + "abc" + "bca" + "cab" + "abc"  # a warm-up, four rounds
    assert times == {name: pytest.approx([0.5] * 4) for name in "abc"}


def test_first_time_costs_are_not_timed() -> None:
    stage = Stage()
    steps = {"a": stage.step("a", 0.05, 0.001), "b": stage.step("b", 0.001)}
    times = time_interleaved(steps, rounds=2, seconds=1.0, clock=stage.clock)
    assert times["a"] == pytest.approx([0.001, 0.001])


def test_fast_steps_are_repeated() -> None:
    stage = Stage()
    steps = {"a": stage.step("a", timing.SHORTEST / 10), "b": stage.step("b", 0.01)}
    times = time_interleaved(steps, rounds=2, seconds=1.0, clock=stage.clock)
    assert stage.log.count("a") == 3 + 2 * 10
    assert stage.log.count("b") == 3 + 2
    assert times["a"] == pytest.approx([timing.SHORTEST / 10] * 2)


def test_slow_steps_run_in_the_first_rounds_only() -> None:
    stage = Stage()
    steps = {"a": stage.step("a", 0.2), "b": stage.step("b", 0.2), "c": stage.step("c", 9.0)}
    times = time_interleaved(steps, rounds=5, seconds=1.0, clock=stage.clock)
    assert times["c"] == [pytest.approx(9.0), pytest.approx(9.0), None, None, None]
    assert times["a"] == pytest.approx([0.2] * 5)


def test_one_round_is_one_round_for_slow_steps_too() -> None:
    stage = Stage()
    steps = {"a": stage.step("a", 9.0), "b": stage.step("b", 9.0)}
    times = time_interleaved(steps, rounds=1, seconds=1.0, clock=stage.clock)
    assert times == {"a": [pytest.approx(9.0)], "b": [pytest.approx(9.0)]}


def test_a_budget_is_shared_out() -> None:
    """The step that takes ten times as long gets a tenth of the rounds, the others do not wait."""
    stage = Stage()
    steps = {"a": stage.step("a", 0.01), "b": stage.step("b", 0.01), "c": stage.step("c", 0.1)}
    times = time_interleaved(steps, rounds=None, seconds=3.0, clock=stage.clock)
    ran = {name: sum(t is not None for t in values) for name, values in times.items()}
    assert ran["a"] == ran["b"] == pytest.approx(100, abs=1)
    assert ran["c"] == pytest.approx(10, abs=1)


def test_some_rounds_are_run_however_small_the_budget() -> None:
    stage = Stage()
    steps = {"a": stage.step("a", 0.5), "b": stage.step("b", 0.5)}
    times = time_interleaved(steps, rounds=None, seconds=1e-6, clock=stage.clock)
    assert len(times["a"]) == timing.FEWEST_ROUNDS


def test_ratios_are_those_of_one_round() -> None:
    """A machine that is half as fast in one round changes no ratio."""
    assert ratios([3.0, 6.0, None, 3.0], [1.0, 2.0, 1.0, None]) == [3.0, 3.0]


def test_spread() -> None:
    found = spread([5.0, 1.0, 3.0, 2.0, 4.0])
    assert (found.lower, found.median, found.upper) == (2.0, 3.0, 4.0)
    assert spread([1.0, 2.0]).median == 1.5
    assert spread([7.0]).upper == 7.0

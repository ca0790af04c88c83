"""Interleaved timing: every round runs each contender once, in an order that moves on.

Whatever the machine does meanwhile (another clock rate, a neighbour) meets all contenders of a
round alike, and is gone from the ratio of two times of one round.
"""

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SHORTEST: Final = 5e-4
"""Seconds; what is faster is repeated within a round until it takes about this long."""
SLOW: Final = 3.0
"""Seconds; what is slower takes part in the first SLOW_ROUNDS rounds only."""
SLOW_ROUNDS: Final = 2
FEWEST_ROUNDS: Final = 3
MOST_ROUNDS: Final = 300

Step = Callable[[], object]


@dataclass(frozen=True)
class Spread:
    """Median and quartiles."""

    median: float
    lower: float
    upper: float


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles of at least one value, interpolated between neighbours."""
    ordered = sorted(values)

    def at(fraction: float) -> float:
        position = fraction * (len(ordered) - 1)
        low = math.floor(position)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (position - low) * (ordered[high] - ordered[low])

    return Spread(at(0.5), at(0.25), at(0.75))


def time_interleaved(
    steps: Mapping[str, Step],
    *,
    rounds: int | None,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float | None]]:
    """Seconds per call of each step, round by round; None where a step was left out.

    Args:
        steps: what to time, by name.
        rounds: how many rounds; None: each step takes part until its share of ``seconds`` is used
            up, so that a slow one does not leave the others with few rounds.
        seconds: budget for all rounds if their number is not given.
        clock: where the time comes from.
    """
    names = list(steps)
    single = {name: _warm_up(step, clock) for name, step in steps.items()}
    repeats = {name: _repeats(single[name]) for name in names}
    times: dict[str, list[float | None]] = {name: [] for name in names}
    spent = dict.fromkeys(names, 0.0)

    def takes_part(name: str, done: int) -> bool:
        if single[name] > SLOW:
            return done < min(SLOW_ROUNDS, SLOW_ROUNDS if rounds is None else rounds)
        if rounds is not None:
            return done < rounds
        has_budget = spent[name] < seconds / len(names) and done < MOST_ROUNDS
        return has_budget or done < FEWEST_ROUNDS

    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for done in range(MOST_ROUNDS if rounds is None else rounds):
            active = [name for name in names if takes_part(name, done)]
            if len(active) < min(2, len(names)):
                break  # nobody is left to compare with
            first = done % len(names)
            for name in (*names[first:], *names[:first]):
                if name not in active:
                    times[name].append(None)
                    continue
                measured = _measure(steps[name], repeats[name], clock)
                spent[name] += measured * repeats[name]
                times[name].append(measured)
    finally:
        if collects:
            gc.enable()
    return times


def ratios(times: Sequence[float | None], base: Sequence[float | None]) -> list[float]:
    """Time divided by the base's time, for every round in which both ran."""
    pairs = zip(times, base, strict=True)
    return [t / b for t, b in pairs if t is not None and b is not None]


def _warm_up(step: Step, clock: Callable[[], float]) -> float:
    """Run a step until its first-time costs are paid; seconds of the last run."""
    first = _measure(step, 1, clock)
    if first > 0.1:
        return first
    return min(_measure(step, 1, clock), _measure(step, 1, clock))


def _repeats(single: float) -> int:
    return max(1, min(10_000, math.ceil(SHORTEST / max(single, 1e-9))))


def _measure(step: Step, repeats: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeats):
        step()
    return (clock() - start) / repeats

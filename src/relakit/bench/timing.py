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
SLOW: Final = 1.0
"""Seconds; what is slower takes part in the first SLOW_ROUNDS rounds only."""
SLOW_ROUNDS: Final = 2
FEWEST_ROUNDS: Final = 3
MOST_ROUNDS: Final = 301

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
    """Seconds per call of each step, round by round; None where a slow step was left out.

    Args:
        steps: what to time, by name.
        rounds: how many rounds; None: as many as fit into ``seconds``, but some at least.
        seconds: budget for the rounds if their number is not given.
        clock: where the time comes from.
    """
    names = list(steps)
    single = {name: _warm_up(step, clock) for name, step in steps.items()}
    repeats = {name: _repeats(single[name]) for name in names}
    times: dict[str, list[float | None]] = {name: [] for name in names}
    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        begin = clock()
        done = 0
        while _goes_on(done, clock() - begin, rounds, seconds):
            first = done % len(names)
            for name in (*names[first:], *names[:first]):
                takes_part = single[name] <= SLOW or done < SLOW_ROUNDS
                measured = _measure(steps[name], repeats[name], clock) if takes_part else None
                times[name].append(measured)
            done += 1
    finally:
        if collects:
            gc.enable()
    return times


def ratios(times: Sequence[float | None], base: Sequence[float | None]) -> list[float]:
    """Time divided by the base's time, for every round in which both ran."""
    pairs = zip(times, base, strict=True)
    return [t / b for t, b in pairs if t is not None and b is not None]


def _goes_on(done: int, elapsed: float, rounds: int | None, seconds: float) -> bool:
    if rounds is not None:
        return done < rounds
    return done < FEWEST_ROUNDS or (elapsed < seconds and done < MOST_ROUNDS)


def _warm_up(step: Step, clock: Callable[[], float]) -> float:
    """Run a step until its first-time costs are paid; seconds of the last run."""
    first = _measure(step, 1, clock)
    if first > SLOW:
        return first
    return min(_measure(step, 1, clock), _measure(step, 1, clock))


def _repeats(single: float) -> int:
    return max(1, min(10_000, math.ceil(SHORTEST / max(single, 1e-9))))


def _measure(step: Step, repeats: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeats):
        step()
    return (clock() - start) / repeats

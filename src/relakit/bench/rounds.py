"""Interleaved rounds: every round runs each contender once, in rotating order.

Whatever else happens on the machine (a different clock rate, another process) affects all
contenders of a round alike, and cancels out in the ratio of two turns of one round. A turn may be a
block of calls that take microseconds, or minutes of work in another process.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

SHORTEST_BLOCK: Final = 5e-4
"""Seconds; a faster call is repeated until its turn takes about this long."""
MOST_CALLS: Final = 10_000
SLOW: Final = 3.0
"""Seconds; with a budget, a contender with longer turns takes part in only SLOW_ROUNDS rounds."""
SLOW_ROUNDS: Final = 2
FEWEST_ROUNDS: Final = 3
MOST_ROUNDS: Final = 300
COLLECT_AFTER: Final = 1.0
"""Fewest seconds between two garbage collections, which happen between rounds, never within one."""

Clock = Callable[[], float]


class ContenderError(Exception):
    """A contender cannot take part, or cannot continue; the message says why."""


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


@dataclass(frozen=True)
class Turn:
    """What a contender did in one round."""

    seconds: float
    work: Mapping[str, int]
    """The amount of work by unit, such as ``{"calls": 12}``."""

    def seconds_per(self, unit: str) -> float:
        return self.seconds / self.work[unit]

    def per_second(self, unit: str) -> float:
        return self.work[unit] / self.seconds


Measure = Callable[[Turn], float]


def seconds_per_call(turn: Turn) -> float:
    return turn.seconds_per("calls")


@dataclass
class CaseRounds:
    """All rounds of one case."""

    case: str
    rounds: list[dict[str, Turn]] = field(default_factory=list)
    """Turns by label for each round; contenders that sat out a round are missing."""

    def of(self, label: str) -> list[Turn]:
        """A contender's turns."""
        return [turns[label] for turns in self.rounds if label in turns]

    def values(self, label: str, measure: Measure) -> Spread | None:
        """Median and quartiles over a contender's turns; None if it had none."""
        values = [measure(turn) for turn in self.of(label)]
        return spread(values) if values else None

    def ratio(self, label: str, base: str, measure: Measure) -> Spread | None:
        """Median and quartiles of ``label``'s values divided by ``base``'s in the same round."""
        ratios = [
            measure(turns[label]) / measure(turns[base])
            for turns in self.rounds
            if label in turns and base in turns
        ]
        return spread(ratios) if ratios else None


class Contender(Protocol):
    """Something to measure, one turn per round."""

    def warm_up(self, case: str) -> None:
        """Run once, so that first-time costs are not timed."""

    def run(self, case: str, number: int) -> Turn:
        """Run round ``number`` (from 0) of a case. Raises ContenderError if it cannot continue."""


class RepeatedCall:
    """A function as a contender: called repeatedly, so that a turn is long enough to be timed."""

    def __init__(self, call: Callable[[], object], clock: Clock = time.perf_counter) -> None:
        self._call = call
        self._clock = clock
        self._calls = 1

    def warm_up(self, case: str) -> None:
        single = self._time(1)
        if single <= 0.1:  # the first call may have loaded or compiled something
            single = min(self._time(1), self._time(1))
        self._calls = max(1, min(MOST_CALLS, math.ceil(SHORTEST_BLOCK / max(single, 1e-9))))

    def run(self, case: str, number: int) -> Turn:
        return Turn(self._time(self._calls), {"calls": self._calls})

    def _time(self, calls: int) -> float:
        start = self._clock()
        for _ in range(calls):
            self._call()
        return self._clock() - start


@dataclass
class Field:
    """The contenders by label, and the reasons why others are missing."""

    contenders: dict[str, Contender] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    """Why a contender does not run, or has stopped, by label."""
    about: dict[str, str] = field(default_factory=dict)
    """Versions and the like, by label."""

    def enter(self, label: str, make: Callable[[], tuple[Contender, str]]) -> None:
        """Add the contender that ``make`` returns, or note why it cannot take part."""
        try:
            contender, about = make()
        except ContenderError as error:
            self.notes[label] = str(error)
        else:
            self.contenders[label] = contender
            self.about[label] = about
            self.notes.pop(label, None)

    def attempt(self, label: str, action: Callable[[Contender], None]) -> None:
        """Let a contender do something; if it fails, remove it and note the reason."""
        try:
            action(self.contenders[label])
        except ContenderError as error:
            del self.contenders[label]
            self.notes[label] = str(error)


class Limit(Protocol):
    """When to stop."""

    @property
    def rounds(self) -> int | None:
        """How many rounds to run, if known."""

    def allows(self, label: str, case: CaseRounds, contenders: int) -> bool:
        """Whether a contender, one of several, takes part in the next round of a case."""


@dataclass(frozen=True)
class FixedRounds:
    """The same number of rounds for all contenders."""

    rounds: int

    def allows(self, label: str, case: CaseRounds, contenders: int) -> bool:
        return len(case.rounds) < self.rounds


@dataclass(frozen=True)
class Budget:
    """Rounds until a contender has used up its share of the time.

    Each has its own share, so that a slow one does not leave the others with few rounds.
    """

    rounds: int | None
    """A fixed number of rounds instead; None: by time."""
    seconds: float
    """Time for all contenders together."""

    def allows(self, label: str, case: CaseRounds, contenders: int) -> bool:
        done, turns = len(case.rounds), case.of(label)
        if self.rounds is not None and done >= self.rounds:
            return False
        if turns and turns[0].seconds_per("calls") > SLOW:
            return done < SLOW_ROUNDS
        if self.rounds is not None:
            return True
        spent = sum(turn.seconds for turn in turns)
        has_budget = spent < self.seconds / contenders and done < MOST_ROUNDS
        return has_budget or done < FEWEST_ROUNDS


def take_turns(
    field: Field,
    case: CaseRounds,
    limit: Limit,
    *,
    only: Callable[[str], bool] = lambda label: True,
    after_round: Callable[[], None] = lambda: None,
    tell: Callable[[str], None] = lambda text: None,
) -> None:
    """Add rounds to a case until the limit is reached or nothing is left to compare.

    Args:
        field: the contenders; one that fails is removed, and the reason is noted there.
        case: the case, with the rounds of an earlier run if there was one.
        limit: when to stop.
        only: whether a contender, by its label, takes part in this case.
        after_round: called when a round is complete.
        tell: called with a description of the current step.
    """

    def entered() -> list[str]:
        return [label for label in field.contenders if only(label)]

    def active() -> list[str]:
        labels = entered()
        allowed = [label for label in labels if limit.allows(label, case, len(labels))]
        return allowed if len(allowed) >= min(2, len(labels)) else []

    if not active():
        return
    for label in entered():
        tell(f"{case.case}, warm-up: {label}")
        field.attempt(label, lambda contender: contender.warm_up(case.case))
    total = "" if limit.rounds is None else f" of {limit.rounds}"
    with _garbage_collector.held_back():
        while labels := active():
            _garbage_collector.collect()
            number = len(case.rounds)
            turns: dict[str, Turn] = {}
            for label in _rotated(entered(), number):
                if label in labels:
                    tell(f"{case.case}, round {number + 1}{total}: {label}")
                    field.attempt(label, _recorded(turns, label, case.case, number))
            case.rounds.append({label: turns[label] for label in labels if label in turns})
            after_round()


def _rotated(labels: Sequence[str], by: int) -> list[str]:
    first = by % len(labels)
    return [*labels[first:], *labels[:first]]


def _recorded(
    turns: dict[str, Turn], label: str, case: str, number: int
) -> Callable[[Contender], None]:
    def run(contender: Contender) -> None:
        turns[label] = contender.run(case, number)

    return run


class _GarbageCollector:
    """Collects garbage between rounds, no more often than needed, because it is slow."""

    def __init__(self) -> None:
        self._last = -math.inf

    def collect(self) -> None:
        if time.monotonic() - self._last > COLLECT_AFTER:
            gc.collect()
            self._last = time.monotonic()

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """A block in which only `collect` collects garbage."""
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_enabled:
                gc.enable()


_garbage_collector = _GarbageCollector()

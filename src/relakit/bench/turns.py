"""Whole systems that take turns on the same work: round after round, each of them once.

The order moves on from round to round, as in `relakit.bench.timing`. Here a turn takes seconds and
may happen in another process, which reports its own time.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from relakit.bench.timing import Spread, spread

RELAKIT: Final = "relakit"


class ContenderError(Exception):
    """A contender cannot take part, or not any more; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A system in one configuration."""

    system: str
    """relakit, or the name of a peer."""
    attention: str
    precision: str

    @property
    def label(self) -> str:
        """Unique within a run."""
        name = self.attention if self.is_ours else self.system
        return f"{name} {self.precision}"

    @property
    def is_ours(self) -> bool:
        return self.system == RELAKIT


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What a contender did in a round."""

    seconds: float
    target_tokens: int
    """The end-of-sentence tokens count."""
    sentences: int

    @property
    def tokens_per_second(self) -> float:
        return self.target_tokens / self.seconds

    @property
    def sentences_per_second(self) -> float:
        return self.sentences / self.seconds


@dataclass
class CaseTurns:
    """All turns on one piece of work."""

    case: str
    """What the work is, such as "batch 64"."""
    source_length: float | None = None
    """Mean tokens of a source, where the cases differ in it."""
    rounds: list[dict[str, Turn]] = field(default_factory=list)
    """By label; who failed is missing."""

    def of(self, label: str) -> list[Turn]:
        """A contender's turns."""
        return [turns[label] for turns in self.rounds if label in turns]

    def ratios(self, label: str, base: str) -> list[float]:
        """Tokens per second of one divided by those of the other, round by round."""
        return [
            turns[label].tokens_per_second / turns[base].tokens_per_second
            for turns in self.rounds
            if label in turns and base in turns
        ]

    def ratio(self, label: str, base: str) -> Spread | None:
        """Median and quartiles of `ratios`; None if they never met."""
        ratios = self.ratios(label, base)
        return spread(ratios) if ratios else None


class Runner(Protocol):
    """A contender that is ready to work."""

    def warm_up(self, case: str) -> None:
        """Pay what only the first time costs."""

    def run(self, case: str, number: int) -> Turn:
        """Round ``number`` (from 0) of a case; may raise ContenderError."""


@dataclass
class Field:
    """Who takes part: those that run, and why the others do not."""

    contenders: Sequence[Contender]
    runners: dict[str, Runner] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    """Reasons, by label, of those that do not run or stopped."""
    about: dict[str, str] = field(default_factory=dict)
    """Versions and the like, by label."""

    def prepare(self, contender: Contender, make: Callable[[], tuple[Runner, str]]) -> None:
        """Make a contender ready, or note why that is impossible."""
        try:
            runner, about = make()
        except ContenderError as error:
            self.notes[contender.label] = str(error)
        else:
            self.runners[contender.label] = runner
            self.about[contender.label] = about
            self.notes.pop(contender.label, None)

    def stop(self, label: str, reason: str) -> None:
        """Let a contender take part no more."""
        del self.runners[label]
        self.notes[label] = reason


def take_turns(
    field: Field,
    results: CaseTurns,
    *,
    rounds: int,
    only: Callable[[str], bool] = lambda label: True,
    after_round: Callable[[], None] = lambda: None,
    tell: Callable[[str], None] = lambda text: None,
) -> None:
    """Add rounds to a case until it has ``rounds`` of them.

    Args:
        field: who takes part; who fails is noted there and takes part no more.
        results: the case, with the rounds of an earlier run if there was one.
        rounds: how many there are to be.
        only: whether a contender, by its label, takes part in this case.
        after_round: called when a round is complete.
        tell: gets what is being done.
    """
    if len(results.rounds) >= rounds:
        return
    for label in [label for label in field.runners if only(label)]:
        tell(f"{results.case}, warm-up: {label}")
        _attempt(field, label, lambda runner: runner.warm_up(results.case))
    for number in range(len(results.rounds), rounds):
        labels = [label for label in field.runners if only(label)]
        if not labels:
            return
        first = number % len(labels)
        turns: dict[str, Turn] = {}
        with _collecting_before():
            for label in (*labels[first:], *labels[:first]):
                tell(f"{results.case}, round {number + 1} of {rounds}: {label}")
                _attempt(field, label, _recorded(turns, label, results.case, number))
        results.rounds.append({label: turns[label] for label in labels if label in turns})
        after_round()


def _recorded(
    turns: dict[str, Turn], label: str, case: str, number: int
) -> Callable[[Runner], None]:
    def run(runner: Runner) -> None:
        turns[label] = runner.run(case, number)

    return run


def _attempt(field: Field, label: str, action: Callable[[Runner], None]) -> None:
    try:
        action(field.runners[label])
    except ContenderError as error:
        field.stop(label, str(error))


@contextmanager
def _collecting_before() -> Iterator[None]:
    """Let the garbage collector come now, and not in the middle of someone's turn."""
    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def baseline_of(contender: Contender, contenders: Sequence[Contender]) -> Contender | None:
    """What a contender's speed is divided by: softmax in this toolkit, in the same precision.

    Where that precision was not measured (a peer's int8), softmax in float32.
    """
    softmax = {c.precision: c for c in contenders if c.is_ours and c.attention == "softmax"}
    return softmax.get(contender.precision, softmax.get("fp32"))


def peers_of(contenders: Sequence[Contender]) -> list[Contender]:
    """Those of other toolkits."""
    return [contender for contender in contenders if not contender.is_ours]

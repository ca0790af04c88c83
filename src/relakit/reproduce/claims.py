"""What a claim of the paper is, and how its verdict is reached.

A verdict follows from an interval, never from a mean alone: over seeds by Welch's t test, or over
sentences where a claim is about one model. An interval on the claim's side says "holds", one on the
other side "does not hold"; anything else is "not decidable".
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from relakit.amounts import number_with_noun
from relakit.reproduce.evidence import Evidence, Measure, Setting
from relakit.reproduce.statistics import Difference, Seeds, difference

LEAST_RUNS: Final = 2
"""A single run, failed or not, decides nothing."""

Verdict: TypeAlias = Literal["holds", "does not hold", "not decidable"]
Judge: TypeAlias = Callable[[Difference], Verdict]


@dataclass(frozen=True)
class Finding:
    """What was measured about a claim in one setting."""

    setting: str
    measured: str
    n: int | tuple[int, int]
    """Runs of the model that the claim is about, or of both models that it compares"""
    verdict: Verdict | None
    """None where the paper claims nothing"""


Find: TypeAlias = Callable[[Evidence], list[Finding]]
FindIn: TypeAlias = Callable[[Evidence, Setting], Finding | None]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that can be wrong."""

    text: str
    paper: str
    """The numbers that it rests on in the paper"""
    find: Find
    """One finding for each setting in which it was measured"""


def in_each_setting(find: FindIn) -> Find:
    """Ask for a finding in every setting."""

    def all_findings(evidence: Evidence) -> list[Finding]:
        found = (find(evidence, setting) for setting in evidence.settings())
        return [finding for finding in found if finding is not None]

    return all_findings


def higher(found: Difference) -> Verdict:
    """The first number should be above the second."""
    if found.low > 0:
        return "holds"
    return "does not hold" if found.high <= 0 else "not decidable"


def lower(found: Difference) -> Verdict:
    """The first number should be below the second."""
    return higher(found.negated())


def at_most_below(margin: float) -> Judge:
    """The first number may be below the second, but not by more than ``margin``."""

    def judge(found: Difference) -> Verdict:
        if found.low >= -margin:
            return "holds"
        return "does not hold" if found.high < -margin else "not decidable"

    return judge


def within(margin: float) -> Judge:
    """The two numbers should not differ by more than ``margin``."""

    def judge(found: Difference) -> Verdict:
        if -margin <= found.low and found.high <= margin:
            return "holds"
        outside = found.low > margin or found.high < -margin
        return "does not hold" if outside else "not decidable"

    return judge


_NEVER: Final = Difference(-math.inf, -math.inf, -math.inf, (0, 0))
"""How far a model that cannot be trained is behind one that can."""


def by_failures(judge: Judge, failed: tuple[int, int]) -> list[Verdict]:
    """The verdicts that follow from failed runs of the first and of the second model.

    A model that cannot be trained is worse than any other, and never as good.
    """
    extremes = (_NEVER, _NEVER.negated())
    return [judge(gap) for gap, count in zip(extremes, failed, strict=True) if count]


def despite_failures(verdict: Verdict, judge: Judge, failed: tuple[int, int]) -> Verdict:
    """The verdict of the runs that were trained, unless the failed ones say otherwise."""
    return all_agree([verdict, *by_failures(judge, failed)])


def all_agree(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict that all share; not decidable if they differ."""
    return verdicts[0] if len(set(verdicts)) == 1 else "not decidable"


@dataclass(frozen=True)
class Comparison:
    """Compares two rows by one number, the higher the better, in every setting that has both."""

    first: str
    second: str
    measure: Measure
    judge: Judge
    unit: str

    def __call__(self, evidence: Evidence) -> list[Finding]:
        return in_each_setting(self._finding)(evidence)

    def _finding(self, evidence: Evidence, setting: Setting) -> Finding | None:
        rows = (self.first, self.second)
        scores = [evidence.seeds(setting, row, self.measure) for row in rows]
        failed = (evidence.failed(setting, rows[0]), evidence.failed(setting, rows[1]))
        if any(score is None and not count for score, count in zip(scores, failed, strict=True)):
            return None
        sides = [_in_words(*side) for side in zip(rows, scores, failed, strict=True)]
        measured = " against ".join(sides)
        first, second = scores
        if first is not None and second is not None:
            gap = difference(first.values, second.values)
            measured += f": {gap.text()} {self.unit}"
            verdict = despite_failures(self.judge(gap), self.judge, failed)
        elif max(failed) < LEAST_RUNS:
            verdict = "not decidable"
        else:
            verdict = all_agree(by_failures(self.judge, failed))
        n = (len(evidence.runs(setting, self.first)), len(evidence.runs(setting, self.second)))
        return Finding(setting.label, measured, n, verdict)


def _in_words(row: str, scores: Seeds | None, failed: int) -> str:
    if scores is None:
        return f"{number_with_noun(failed, 'run')} of {row}, all failed"
    return scores.text() + (f" ({failed} more failed)" if failed else "")


def all_of(verdicts: list[Verdict]) -> Verdict:
    """The verdict on a claim that has several parts."""
    if "does not hold" in verdicts:
        return "does not hold"
    return "holds" if verdicts and all(v == "holds" for v in verdicts) else "not decidable"


def by_count(having: int, runs: int) -> Verdict:
    """The verdict on a claim that each run confirms or not; a single run decides nothing."""
    if runs < LEAST_RUNS:
        return "not decidable"
    if having == runs:
        return "holds"
    return "not decidable" if having else "does not hold"

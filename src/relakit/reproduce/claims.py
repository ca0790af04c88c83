"""What a claim of the paper is, and how a verdict comes about.

A verdict follows from an interval, never from a mean alone: over seeds by Welch's t test, or over
sentences where a claim is about one model. An interval on the claim's side says "holds", one on the
other side "does not hold"; anything else is "not decidable".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from relakit.reproduce.evidence import Evidence, Measure, Setting
from relakit.reproduce.statistics import Difference, difference

Verdict: TypeAlias = Literal["holds", "does not hold", "not decidable"]
Judge: TypeAlias = Callable[[Difference], Verdict]


@dataclass(frozen=True)
class Finding:
    """What was measured about a claim in one setting."""

    setting: str
    measured: str
    n: int
    """Runs of the model that the claim is about"""
    verdict: Verdict | None
    """None where the paper claims nothing"""


Find: TypeAlias = Callable[[Evidence], list[Finding]]
FindIn: TypeAlias = Callable[[Evidence, Setting], Finding | None]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that can be wrong."""

    text: str
    paper: str
    """The numbers it rests on there"""
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
    """The first number may be below the second, but not by more than that."""

    def judge(found: Difference) -> Verdict:
        if found.low >= -margin:
            return "holds"
        return "does not hold" if found.high < -margin else "not decidable"

    return judge


def within(margin: float) -> Judge:
    """The two numbers should not differ by more than that."""

    def judge(found: Difference) -> Verdict:
        if -margin <= found.low and found.high <= margin:
            return "holds"
        outside = found.low > margin or found.high < -margin
        return "does not hold" if outside else "not decidable"

    return judge


@dataclass(frozen=True)
class Comparison:
    """Two rows, compared by one number in every setting that has both."""

    first: str
    second: str
    measure: Measure
    judge: Judge
    unit: str
    if_failed: Verdict = "does not hold"
    """The verdict if training of the first row fails"""

    def __call__(self, evidence: Evidence) -> list[Finding]:
        return in_each_setting(self._finding)(evidence)

    def _finding(self, evidence: Evidence, setting: Setting) -> Finding | None:
        first = evidence.seeds(setting, self.first, self.measure)
        second = evidence.seeds(setting, self.second, self.measure)
        failed = evidence.failed(setting, self.first)
        if second is None or (first is None and not failed):
            return None
        if first is None:
            return Finding(setting.label, f"all {failed} runs failed", failed, self.if_failed)
        gap = difference(first.values, second.values)
        verdict = self.judge(gap)
        measured = f"{first.text()} against {second.text()}: {gap.text()} {self.unit}"
        if failed:
            measured += f"; {failed} more failed"
            verdict = verdict if verdict == self.if_failed else "not decidable"
        return Finding(setting.label, measured, first.n, verdict)


def all_of(verdicts: list[Verdict]) -> Verdict:
    """The verdict of a claim that has several parts."""
    if "does not hold" in verdicts:
        return "does not hold"
    return "holds" if verdicts and all(v == "holds" for v in verdicts) else "not decidable"


def by_count(having: int, runs: int) -> Verdict:
    """Of a claim that each run bears out or not; a single run decides nothing."""
    if runs < 2:
        return "not decidable"
    if having == runs:
        return "holds"
    return "not decidable" if having else "does not hold"

"""A case: what a user does, what should happen, and what did happen."""

import re
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fault_rows import BOX, FOREIGN_WORDS, PREFIX, Row, content_of, matches

from answers.measured_process import Ended, run_measured

RELAKIT: Final = (sys.executable, "-m", "relakit")
Holds = Callable[[Path, Ended], bool]
"""A condition on the folder and on how the process ended."""
TIME_LIMIT: Final = 300.0
"""Seconds after which a command counts as hung."""
_NUMBER_OF_PROCESS: Final = re.compile(r"process \d+ on")


@dataclass(frozen=True)
class Case:
    """A row of a fault table, or something like it, to run in its own process."""

    row: Row
    program: tuple[str, ...] = RELAKIT
    """The program that the row's command is passed to."""
    holds: Holds | None = None
    """What else must be true afterwards; None: what the row says about the folder."""
    meanwhile: Callable[[Path], AbstractContextManager[object]] = lambda folder: nullcontext()
    """What happens in the folder while the command runs."""
    is_split: bool = True
    """Whether the row's command is to be split at spaces."""

    @property
    def command(self) -> list[str]:
        words = self.row.command.split() if self.is_split else [self.row.command]
        return [*self.program, *words]


@dataclass(frozen=True)
class Outcome:
    """How a case turned out."""

    case: Case
    ended: Ended
    answer: str
    """The line that the command answered with."""
    problems: list[str] = field(default_factory=list)

    @property
    def has_traceback(self) -> bool:
        return "Traceback" in self.ended.errors


def try_case(case: Case, folder: Path, environment: dict[str, str], max_mib: float) -> Outcome:
    """Run a case in a folder that `fault_folder.build` has filled, and check the outcome."""
    row = case.row
    for do in row.breaks:
        do(folder)
    before = content_of(folder, row.leaves) if case.holds is None else {}
    with case.meanwhile(folder):
        ended = run_measured(case.command, folder, environment, time_limit=TIME_LIMIT)
    answer = _answer(row, ended)
    problems = []
    if ended.code != row.code:
        problems.append(f"it ended with {ended.code}, not {row.code}")
    if not matches(answer, row):
        problems.append(f"it answered “{answer}”, not “{row.says}”")
    foreign = [w for w in FOREIGN_WORDS if w in ended.errors and case.program == RELAKIT]
    if foreign:
        problems.append(f"it spoke of {', '.join(foreign)}")
    if ended.peak_mib > max_mib:
        problems.append(f"it took {ended.peak_mib:,.0f} MiB")
    if case.holds is None and content_of(folder, row.leaves) != before:
        problems.append("it changed files")
    if case.holds is not None and not case.holds(folder, ended):
        problems.append("it did not leave what it should")
    return Outcome(case, ended, _anonymous(answer), problems)


def _answer(row: Row, ended: Ended) -> str:
    """The line that says what is wrong; if there are several, the expected one."""
    if ended.code == 2:  # in a box, below the usage
        text = " ".join(ended.errors.translate(BOX).split())
        return text.rpartition(" Error ")[2]
    lines = [*ended.errors.splitlines(), *ended.output.splitlines()]
    if ended.code == 1:
        found = [line.removeprefix(PREFIX) for line in lines if line.startswith(PREFIX)]
        return found[0] if len(found) == 1 else f"{len(found)} errors: {ended.errors[-300:]}"
    expected = [line.removeprefix("relakit: ") for line in lines if matches(line, row)]
    if not row.says:
        return ""
    return expected[0] if expected else (lines[-1] if lines else "")


def _anonymous(answer: str) -> str:
    """The answer without the parts that differ from run to run."""
    return _NUMBER_OF_PROCESS.sub("process 1234 on", answer).replace(socket.gethostname(), "host")

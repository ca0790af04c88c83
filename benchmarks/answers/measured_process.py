"""Runs a command in its own process: exit code, output, time and peak memory."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

STANDARD_INPUT: Final = "stdin.txt"
LAUNCHER: Final = """
import json, os, sys
report, command = int(sys.argv[1]), sys.argv[2:]
closed = [(os.POSIX_SPAWN_CLOSE, report)]
pid = os.posix_spawnp(command[0], command, os.environ, file_actions=closed)
_, status, usage = os.wait4(pid, 0)
seconds = usage.ru_utime + usage.ru_stime
numbers = [os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss / 1024]
os.write(report, json.dumps(numbers).encode())
"""
"""Linux counts a parent's memory towards its child's peak, so a small process starts commands."""


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    code: int
    """Its exit code, or the negated signal number if a signal killed it."""
    output: str
    errors: str
    seconds: float
    """Wall-clock time."""
    cpu_seconds: float
    """CPU time, which other programs hardly affect."""
    peak_mib: float


def run_measured(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], *, time_limit: float
) -> Ended:
    """Run a command in a folder, with ``stdin.txt`` as its input; kill it after the time limit."""
    with (
        (folder / STANDARD_INPUT).open("rb") as standard_input,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
        tempfile.TemporaryFile() as report,
    ):
        begin = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", LAUNCHER, str(report.fileno()), *command],
            cwd=folder,
            stdin=standard_input,
            stdout=output,
            stderr=errors,
            env=dict(environment),
            pass_fds=[report.fileno()],
            start_new_session=True,
        )
        try:
            process.wait(time_limit)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the session contains nothing else
            process.wait()
        seconds = time.perf_counter() - begin
        numbers = _text(report)
        code, cpu_seconds, peak = json.loads(numbers) if numbers else (-signal.SIGKILL, 0.0, 0.0)
        return Ended(code, _text(output), _text(errors), seconds, cpu_seconds, peak)


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")

"""One command in a process of its own: how it ends, what it says, its time and its peak memory."""

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

STANDARD_INPUT = "stdin.txt"


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    code: int
    """Its exit code; minus the signal's number if one killed it."""
    output: str
    errors: str
    seconds: float
    """By the clock."""
    cpu_seconds: float
    """Of the processor, which other programs do not lengthen."""
    peak_mib: float


def run_measured(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], *, time_limit: float
) -> Ended:
    """Run a command in a folder, with the folder's ``stdin.txt``; kill it after the time limit.

    Linux counts the memory of the process that starts it, too, until the program is loaded. So
    whoever calls this must be small: it must not have loaded torch.
    """
    with (
        (folder / STANDARD_INPUT).open("rb") as standard_input,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        begin = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=standard_input,
            stdout=output,
            stderr=errors,
            env=dict(environment),
        )
        timer = threading.Timer(time_limit, process.kill)
        timer.start()
        try:
            # Not process.wait(), and not the sum over all children: what this one has used.
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Ended(
        code=process.returncode,
        output=texts[0],
        errors=texts[1],
        seconds=seconds,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_mib=usage.ru_maxrss / 1024,
    )

"""Programs that must end in time, in processes of their own, which can be ended at any moment."""

import subprocess
import sys

import pytest

LONGEST_WAIT = 60
"""Seconds; what takes time in proportion to its input takes one or two."""


def run_in_time(program: str, *arguments: str) -> None:
    """Run a program, which should print what it is at."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_WAIT,
        )
    except subprocess.TimeoutExpired as late:
        printed = (late.stdout or b"").decode().splitlines()
        pytest.fail(f"it has not ended in {LONGEST_WAIT} s; it was at {printed[-1:]}")
    assert done.returncode == 0, done.stderr

"""The peak memory of a process that a test starts, and of a part of a test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PRINT_PEAK = """
with open("/proc/self/status") as status:
    print("peak", next(line.split()[1] for line in status if line.startswith("VmHWM:")))
"""
"""Code for the end of a process's program: its own peak in KiB.

Not ``ru_maxrss``, which begins at the peak of the process that started it: pytest, with torch.
"""

needs_proc = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells the peak in /proc"
)


@contextmanager
def growth_below(mebibytes: int) -> Iterator[None]:
    """Fail if this process takes that much more memory in the block, at any time.

    Its peak is forgotten before: what it needed earlier would hide what it needs now.
    """
    if sys.platform != "linux":
        yield
        return
    Path("/proc/self/clear_refs").write_text("5")
    before = _memory("VmRSS")
    yield
    assert _memory("VmHWM") - before < mebibytes << 10


def _memory(name: str) -> int:
    """In KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))

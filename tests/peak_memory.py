"""The peak memory of a process that a test starts."""

import sys

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

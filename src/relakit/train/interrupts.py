"""Ctrl-C and SIGTERM end a run after the current update."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Which signal asked to stop, if any."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:  # asked twice
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def caught_interrupts() -> Iterator[Interrupts]:
    """Note SIGINT and SIGTERM, to end a little later. A second one ends the run at once."""
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts  # signals reach the main thread alone
        return
    old = {n: signal.signal(n, interrupts._take) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)

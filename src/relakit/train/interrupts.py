"""Ctrl-C, SIGTERM and a closed terminal end a run after the current update."""

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
        if self.signal is None:
            self.signal = number
        elif number != signal.SIGHUP:  # a closing terminal is not a user who asks twice
            raise KeyboardInterrupt


@contextmanager
def caught_interrupts() -> Iterator[Interrupts]:
    """Record SIGINT, SIGTERM and SIGHUP, so that the run can end a little later.

    A second SIGINT or SIGTERM ends the run at once. Where SIGHUP is ignored, as under nohup, it
    stays ignored.
    """
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts  # only the main thread receives signals
        return
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    old = {number: signal.signal(number, interrupts._take) for number in numbers}
    try:
        yield interrupts
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)

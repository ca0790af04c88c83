"""Input that may take long to arrive, such as a terminal's, and that Ctrl-C always interrupts.

Python's signal handler only sets a flag, which the interpreter checks before its next instruction.
A Ctrl-C between the last instruction and the moment the read blocks is therefore not seen until the
next line arrives, nor is one that the system delivers to another thread. But the handler also
writes to a pipe if asked to, so we wait for both the input and this pipe.
"""

import io
import os
import select
import signal
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class _WaitingReader(io.RawIOBase):
    def __init__(self, descriptor: int, wakeup: int) -> None:
        self._descriptor = descriptor
        self._wakeup = wakeup

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        while True:
            ready, _, _ = select.select([self._descriptor, self._wakeup], [], [])
            # A handler that raises, as Ctrl-C's does, has done so by now.
            if self._wakeup in ready:
                os.read(self._wakeup, 512)
            if self._descriptor in ready:
                return os.readv(self._descriptor, [buffer])


@contextmanager
def interruptible(stream: BinaryIO) -> Generator[BinaryIO, None, None]:
    """Makes ``stream``, from which nothing was read yet, interruptible if a read can block."""
    if not _can_wait(stream):
        yield stream
        return
    wakeup, handlers_end = os.pipe()
    os.set_blocking(handlers_end, False)
    before = signal.set_wakeup_fd(handlers_end)
    try:
        yield io.BufferedReader(_WaitingReader(stream.fileno(), wakeup))
    finally:
        signal.set_wakeup_fd(before)
        os.close(handlers_end)
        os.close(wakeup)


def _can_wait(stream: BinaryIO) -> bool:
    # Only the main thread handles signals; Windows can wait only for sockets.
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        return False
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # a stream in memory has no descriptor
        return False

"""Input that may take long to come, such as a terminal's, and that Ctrl-C always interrupts.

Python's signal handler only makes a note, which the interpreter sees before its next instruction. A
Ctrl-C that comes between the last instruction and the moment the read blocks is thus not seen until
the next line arrives, nor is one that the system delivers to another thread. But the handler also
writes to a pipe if asked to, so we wait for the input and for this pipe.
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
    """Reads from ``stream``, of which nothing has been read yet, if a read from it can wait."""
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
    # Only the main thread handles signals; Windows waits for sockets alone.
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        return False
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # memory has no descriptor
        return False

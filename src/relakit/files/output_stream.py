"""Open files to write into, whose errors say which file it is; and what is no regular file."""

import errno
import io
import os
import re
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from relakit.files.write_errors import explained, os_error

BUFFER_BYTES: Final = 1 << 18
_LINKS: Final = 40
"""Symbolic links that are followed, one after the other."""
_DESCRIPTORS: Final = re.compile(r"/dev/fd|/proc/(?P<pid>\d+)(/task/\d+)?/fd")
"""Folders whose entries are open files."""


@contextmanager
def buffered(handle: "int | Stream", name: Path | str) -> Generator[BinaryIO, None, None]:
    """The file to write into; closed at the end, and given up if the block raises."""
    raw = _Raw(handle, name)
    file = io.BufferedWriter(raw, BUFFER_BYTES)
    try:
        yield file
        file.flush()
    except BaseException:
        raw.discard()
        raise
    finally:
        file.close()


class _Raw(io.RawIOBase):
    """An open file whose errors name it."""

    def __init__(self, handle: "int | Stream", name: Path | str) -> None:
        self._handle = handle
        self._name = name
        self._is_discarded = False
        self.written = 0

    def discard(self) -> None:
        """Drop what is still to come: the file is given up."""
        self._is_discarded = True

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self._is_discarded:
            return len(data)
        with explained(self._name, needed=self.written + len(data)):
            count = (
                os.write(self._handle, data)
                if isinstance(self._handle, int)
                else self._handle.write(data)
            )
        self.written += count
        return count

    def close(self) -> None:
        if not self.closed:
            super().close()
            if isinstance(self._handle, int):
                with explained(self._name):
                    os.close(self._handle)  # a network file system may only say now what went wrong


class Stream:
    """A stream of Python's own, written to at once."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: memoryview) -> int:
        self._stream.write(data)
        self._stream.flush()
        return len(data)


def silence(stream: BinaryIO) -> None:
    """Have what is left in a broken stream go nowhere."""
    with suppress(OSError, io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def open_special(path: Path, *, only_look: bool = False) -> int | None:
    """A handle of what is no regular file, to write into as it is; None for regular files."""
    descriptor = _own_descriptor(path)
    if descriptor is not None:
        _check_open(descriptor)
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()  # what was printed before comes before
        return descriptor if only_look else os.dup(descriptor)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode) or (only_look and stat.S_ISDIR(mode)):
        return None
    if stat.S_ISDIR(mode):
        raise os_error(errno.EISDIR)
    if only_look:
        check_access(path)
        return 0
    return os.open(path, os.O_WRONLY | os.O_NOCTTY)


def _own_descriptor(path: Path) -> int | None:
    """The open file of this process that a path such as /dev/stdout stands for.

    Opened by its path, a file would lose what others have written to it.
    """
    current = os.path.abspath(path)
    for _ in range(_LINKS):
        folder, name = os.path.split(current)
        folder = os.path.realpath(folder)
        match = _DESCRIPTORS.fullmatch(folder)
        if match is not None and name.isdecimal():
            return int(name) if match["pid"] in (None, str(os.getpid())) else None
        current = os.path.join(folder, name)
        if not os.path.islink(current):
            return None
        current = os.path.join(folder, os.readlink(current))
    return None


def _check_open(descriptor: int) -> None:
    """Standard streams that were closed have no object; another file may have their number now."""
    standard = (sys.stdin, sys.stdout, sys.stderr)
    if descriptor < len(standard) and standard[descriptor] is None:
        raise os_error(errno.EBADF)
    os.fstat(descriptor)


def check_access(path: Path) -> None:
    """Renaming could replace what may not be written to."""
    if not os.access(path, os.W_OK):
        raise os_error(errno.EACCES)

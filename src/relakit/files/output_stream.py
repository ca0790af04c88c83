"""Open files for writing whose errors name the file; also files that are not regular files."""

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
"""How many symbolic links are followed, one after the other."""
_DESCRIPTORS: Final = re.compile(r"/dev/fd|/proc/(?P<pid>\d+)(/task/\d+)?/fd")
"""Folders whose entries are open files."""


@contextmanager
def buffered(handle: "int | Stream", name: Path | str) -> Generator[BinaryIO, None, None]:
    """A file to write into; closed at the end, and abandoned if the block raises."""
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
    """An open file whose errors include its name."""

    def __init__(self, handle: "int | Stream", name: Path | str) -> None:
        self._handle = handle
        self._name = name
        self._is_discarded = False
        self.written = 0

    def discard(self) -> None:
        """Drop all further writes: the file is abandoned."""
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
                    os.close(self._handle)  # a network file system may only now report errors


class Stream:
    """One of Python's own streams, flushed after every write."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: memoryview) -> int:
        self._stream.write(data)
        self._stream.flush()
        return len(data)


def silence(stream: BinaryIO) -> None:
    """Send whatever is left in a broken stream to /dev/null."""
    with suppress(OSError, io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def open_special(path: Path, *, only_look: bool = False) -> int | None:
    """A handle for writing directly into what is not a regular file; None for regular files."""
    descriptor = _own_descriptor(path)
    if descriptor is not None:
        _check_open(descriptor)
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()  # so that earlier prints come first
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
    """The descriptor of our own open file that a path such as /dev/stdout stands for.

    Opening the file by its path would lose what others have written to it.
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
    """Check that a descriptor is open; another file may now have the number of a closed stream."""
    standard = (sys.stdin, sys.stdout, sys.stderr)
    if descriptor < len(standard) and standard[descriptor] is None:
        raise os_error(errno.EBADF)
    os.fstat(descriptor)


def check_access(path: Path) -> None:
    """Check that a file may be written to: renaming could replace it even if not."""
    if not os.access(path, os.W_OK):
        raise os_error(errno.EACCES)

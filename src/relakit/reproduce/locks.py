"""Locks that keep processes out of each other's folders. They end with the process."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LOCK: Final = ".lock"


class BusyError(ValueError):
    """Another process has the lock."""


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other processes out of a folder.

    Args:
        folder: made if it is missing.
        wait: until another process is done with it.

    Raises:
        BusyError: another process is at work in it, and ``wait`` is False.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"another process is at work in {folder}; wait for it") from None
        yield


def is_locked(folder: Path) -> bool:
    """Whether a process is at work in a folder; nothing is written to find out."""
    try:
        with (folder / LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False

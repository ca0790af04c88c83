"""Names for files being written, and how to tell leftovers of killed writers from live ones.

A temporary file or folder is called ``.NAME.HOST-PID-RANDOM.tmp``, beside what it will become; one
that is being replaced is called ``.NAME.HOST-PID-RANDOM.old``. Its writer holds a lock on it, which
the kernel releases when the writer is gone.
"""

import hashlib
import os
import re
import secrets
import shutil
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from relakit.files.locks import flock, process_exists

Kind = Literal["tmp", "old"]

_NAME: Final = re.compile(
    r"\.(?P<name>.+)\.(?P<host>[\w-]+)-(?P<pid>\d+)-[0-9a-f]{8}\.(?P<kind>tmp|old)", re.DOTALL
)
_LONGEST_NAME: Final = 150
"""Names up to this many bytes are kept; file systems allow 255, including all the rest."""
PATIENCE: Final = 3600.0
"""Seconds after which an unlocked leftover counts as abandoned, whatever its name says: its host
may be gone, or a different process may have its process id by now."""


def temporary_name(path: Path, kind: Kind = "tmp") -> Path:
    """A unique hidden name in the same folder."""
    token = secrets.token_hex(4)
    return path.with_name(f".{_short(path.name)}.{_host()}-{os.getpid()}-{token}.{kind}")


def is_unfinished(path: Path) -> bool:
    """Whether a path is, or lies in, something that is still being written."""
    return any(_NAME.fullmatch(part) for part in path.parts)


def hold(handle: int) -> None:
    """Show that the writer of an open temporary file or folder is alive."""
    flock(handle)  # without locks, the process id in its name shows this


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove what killed writers left in a folder; if ``name`` is given, only leftovers of it.

    What a writer was replacing when it was killed gets its name back.
    """
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return
    for path in found:
        match = _NAME.fullmatch(path.name)
        if match is None or (name is not None and match["name"] != _short(name)):
            continue
        with suppress(OSError):  # another process may be sweeping, or we may not remove it
            if _is_abandoned(path, match["host"], int(match["pid"])):
                _clear(path, folder / (name or match["name"]), match["kind"])


def _clear(path: Path, final: Path, kind: str) -> None:
    if kind == "old" and not os.path.lexists(final):
        os.rename(path, final)
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _is_abandoned(path: Path, host: str, pid: int) -> bool:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        state = flock(handle)
        age = time.time() - os.fstat(handle).st_mtime
    finally:
        os.close(handle)
    if state == "busy":
        return False
    if host == _host() and not process_exists(pid):
        return True
    return state == "got" and age > PATIENCE


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9-]", "_", socket.gethostname())[:40]


def _short(name: str) -> str:
    raw = os.fsencode(name)
    return name if len(raw) <= _LONGEST_NAME else hashlib.sha256(raw).hexdigest()[:32]

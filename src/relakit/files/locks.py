"""Locks that keep processes out of each other's folders. They end with the process.

A lock is a kernel lock (``flock``) on a small file that says who holds it. The kernel releases it
when the process is gone, however it ended, so a lock file left behind is no obstacle.
"""

import errno
import fcntl
import json
import logging
import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn

from relakit.files.write_errors import WriteError, explained

LOCK: Final = ".lock"
SECONDS_BETWEEN_LOOKS: Final = 0.5
"""How often to check, where the system cannot wait for us."""
_UNSUPPORTED: Final = (
    errno.EBADF,  # NFS, for a folder or a file opened read-only
    errno.EINVAL,
    errno.ENOLCK,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
)
_ATTEMPTS: Final = 100
_LOGGER: Final = logging.getLogger(__name__)

Flock = Literal["got", "busy", "unsupported"]


class BusyError(ValueError):
    """Another process holds the lock."""


@dataclass(frozen=True)
class Owner:
    """The process that holds a lock."""

    pid: int
    host: str

    @classmethod
    def this_process(cls) -> "Owner":
        return cls(os.getpid(), socket.gethostname())

    @property
    def is_here(self) -> bool:
        return self.host == socket.gethostname()

    @property
    def is_gone(self) -> bool:
        """Whether it was a process on this host that has ended."""
        return self.is_here and not process_exists(self.pid)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@contextmanager
def locked(
    folder: Path, *, wait: bool = False, beside: bool = False
) -> Generator[None, None, None]:
    """Keep other processes out of a folder.

    Args:
        folder: created if missing, unless the lock is beside it.
        wait: wait until any other process is done with it.
        beside: put the lock beside the folder, which may be replaced meanwhile.

    Raises:
        BusyError: another process is working in it, and ``wait`` is False.
        WriteError: the lock cannot be made.
    """
    path = lock_path(folder, beside=beside)
    made = not path.parent.exists()
    handle = _take(path, folder, wait=wait)
    try:
        yield
    finally:
        # The folder may be gone with our lock, and the path may now be the next process's lock.
        is_ours = _is_still(path, handle)
        if is_ours:
            with suppress(OSError):
                path.unlink()  # before we release it: whoever waits for it notices
        os.close(handle)
        if made and is_ours:
            with suppress(OSError):  # others may have put something there
                path.parent.rmdir()


def is_locked(folder: Path, *, beside: bool = False) -> bool:
    """Whether a process is working in a folder; writes nothing to find out."""
    return _owner_at_work(lock_path(folder, beside=beside)) is not None


def check_unlocked(folder: Path) -> None:
    """Raise BusyError if another process is working in a folder; writes nothing to find out."""
    path = lock_path(folder)
    owner = _owner_at_work(path)
    if owner is not None and owner != Owner.this_process():
        raise _busy(folder, path, owner)


def lock_path(folder: Path, *, beside: bool = False) -> Path:
    """The file that is locked."""
    if not beside:
        return folder / LOCK
    folder = Path(os.path.realpath(folder))
    return folder.with_name(f".{folder.name}{LOCK}")


def process_exists(pid: int) -> bool:
    """Whether this host has a process with this id."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # another user's process
    return True


def flock(handle: int, *, wait: bool = False, shared: bool = False) -> Flock:
    """Lock an open file or folder, if the file system supports it."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return "busy"
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return "unsupported"
        raise
    return "got"


def _take(path: Path, folder: Path, *, wait: bool) -> int:
    """Take the lock, and return a handle of its file; the lock is ours while the handle is open."""
    while True:
        handle = _open(path, folder)
        try:
            with explained(folder):
                state = flock(handle, wait=wait)
                is_ours = state == "got" or (state == "unsupported" and _is_left(handle, folder))
                if is_ours and _is_still(path, handle):
                    _sign(handle, must=state != "got")
                    return handle
            if not is_ours and not wait:
                raise _busy(folder, path, _read_owner(handle))
        except BaseException:
            os.close(handle)
            raise
        # The previous holder removed the file we waited for, or still holds it.
        os.close(handle)
        if state != "got":
            time.sleep(SECONDS_BETWEEN_LOOKS)


def _open(path: Path, folder: Path) -> int:
    for attempt in range(_ATTEMPTS):
        with explained(folder):
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            # The process that made the folder for its lock may have just removed it.
            if not isinstance(error, FileNotFoundError) or attempt == _ATTEMPTS - 1:
                _explain_lock(error, path, folder)
    raise AssertionError("the last attempt returns or raises")


def _explain_lock(error: OSError, path: Path, folder: Path) -> NoReturn:
    owner = _owner_at_work(path)
    if owner is not None:  # another user's lock, whose file we may only read
        raise _busy(folder, path, owner) from None
    raise WriteError(folder, error) from error


def _owner_at_work(path: Path) -> Owner | None:
    """Who holds a lock; `_UNKNOWN` if the holder has not signed it yet."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        state = flock(handle, shared=True)
        owner = _read_owner(handle)
    finally:
        os.close(handle)
    if state == "busy":
        return owner or _UNKNOWN
    if state == "unsupported" and owner is not None and not owner.is_gone:
        return owner
    return None


_UNKNOWN: Final = Owner(0, "")


def _is_left(handle: int, folder: Path) -> bool:
    """Without locks: whether nobody known to be alive has signed the file."""
    _LOGGER.warning(
        "%s: this file system has no locks, so two runs that start there at the same moment would "
        "not notice each other",
        folder,
    )
    owner = _read_owner(handle)
    return owner is None or owner.is_gone or owner == Owner.this_process()


def _is_still(path: Path, handle: int) -> bool:
    """Whether the open file is the one at this path."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _sign(handle: int, *, must: bool) -> None:
    """Write who holds the lock. If the kernel keeps the lock, a full disk does not matter."""
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(asdict(Owner.this_process())).encode() + b"\n", 0)
    except OSError:
        if must:
            raise


def _read_owner(handle: int) -> Owner | None:
    try:
        content = json.loads(os.pread(handle, 1000, 0))
        return Owner(int(content["pid"]), str(content["host"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _busy(folder: Path, path: Path, owner: Owner | None) -> BusyError:
    if owner is None or owner == _UNKNOWN:
        return BusyError(f"another process is at work in {folder}; wait for it")
    text = f"another process is at work in {folder}: {owner}; wait for it or stop it"
    if not owner.is_here:
        text += f" (if {owner.host} is gone, remove {path})"
    return BusyError(text)

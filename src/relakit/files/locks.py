"""Locks that keep processes out of each other's folders. They end with the process.

A lock is the kernel's (``flock``) on a small file, which says who has it. The kernel gives it back
when the process is gone, however that ended, so a lock file that was left behind is no obstacle.
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
"""How often to look, where the system cannot wait for us."""
_UNSUPPORTED: Final = (
    errno.EBADF,  # NFS, for a folder or a file that is open for reading only
    errno.EINVAL,
    errno.ENOLCK,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
)
_ATTEMPTS: Final = 100
_LOGGER: Final = logging.getLogger(__name__)

Flock = Literal["got", "busy", "unsupported"]


class BusyError(ValueError):
    """Another process has the lock."""


@dataclass(frozen=True)
class Owner:
    """The process that has a lock."""

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
        """Whether it was a process of this host, and is no more."""
        return self.is_here and not process_exists(self.pid)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@contextmanager
def locked(
    folder: Path, *, wait: bool = False, beside: bool = False
) -> Generator[None, None, None]:
    """Keep other processes out of a folder.

    Args:
        folder: made if it is missing, unless the lock is beside it.
        wait: until another process is done with it.
        beside: the lock is beside the folder, which may be replaced meanwhile.

    Raises:
        BusyError: another process is at work in it, and ``wait`` is False.
        WriteError: there can be no lock.
    """
    path = lock_path(folder, beside=beside)
    made = not path.parent.exists()
    handle = _take(path, folder, wait=wait)
    try:
        yield
    finally:
        # The folder may be gone with our lock, and the path be the lock of who came next.
        is_ours = _is_still(path, handle)
        if is_ours:
            with suppress(OSError):
                path.unlink()  # before it is given back: whoever waits for it notices
        os.close(handle)
        if made and is_ours:
            with suppress(OSError):  # others have put something there
                path.parent.rmdir()


def is_locked(folder: Path, *, beside: bool = False) -> bool:
    """Whether a process is at work in a folder; nothing is written to find out."""
    return _owner_at_work(lock_path(folder, beside=beside)) is not None


def check_unlocked(folder: Path) -> None:
    """Raise BusyError if another process is at work in a folder; nothing is written to find out."""
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
    """Whether this host has such a process."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # of another user
    return True


def flock(handle: int, *, wait: bool = False, shared: bool = False) -> Flock:
    """Lock an open file or folder, if the file system can."""
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
    """The handle of a lock file that is ours as long as the handle is open."""
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
        # Who had it removed the file that we waited for, or still has it.
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
            # Who made the folder for its lock may have just removed it.
            if not isinstance(error, FileNotFoundError) or attempt == _ATTEMPTS - 1:
                _explain_lock(error, path, folder)
    raise AssertionError("the last attempt returns or raises")


def _explain_lock(error: OSError, path: Path, folder: Path) -> NoReturn:
    owner = _owner_at_work(path)
    if owner is not None:  # another user's, whose file we may only read
        raise _busy(folder, path, owner) from None
    raise WriteError(folder, error) from error


def _owner_at_work(path: Path) -> Owner | None:
    """Who has a lock; `_UNKNOWN` if it has not said so yet."""
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
    """Where there are no locks: whether nobody known to be alive has signed the file."""
    _LOGGER.warning(
        "%s: this file system has no locks, so two runs that start there at the same moment would "
        "not notice each other",
        folder,
    )
    owner = _read_owner(handle)
    return owner is None or owner.is_gone or owner == Owner.this_process()


def _is_still(path: Path, handle: int) -> bool:
    """Whether the file that is open is the one at this path."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _sign(handle: int, *, must: bool) -> None:
    """Say who has the lock. A full disk is no reason to do without one that the kernel keeps."""
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

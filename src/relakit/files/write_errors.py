"""Why something could not be written, in one line: the path, the reason, and what to do."""

import errno
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from relakit.amounts import format_bytes

_REASONS: Final = {
    errno.ENOSPC: ("no space is left on the disk", "make room or choose another place"),
    errno.EDQUOT: ("the disk quota is used up", "make room or choose another place"),
    errno.EROFS: ("its file system is read-only", "choose another place"),
    errno.EACCES: ("permission denied", "choose another place, or have its owner allow it"),
    errno.EPERM: ("permission denied", "choose another place, or have its owner allow it"),
    errno.EISDIR: ("it is a folder", "name a file"),
    errno.ENAMETOOLONG: ("its name is too long", "choose a shorter one"),
    errno.EFBIG: ("it would be larger than is allowed here", "see ulimit -f"),
    errno.EBUSY: ("it is a mount point, or in use", "choose a place inside it"),
    errno.ELOOP: ("its symbolic links lead in a circle", "remove them"),
    errno.ENXIO: ("nothing is there to take it", "choose another place"),
    errno.EBADF: ("it is closed", "redirect it, or choose another place"),
    errno.EIO: ("the device reports an error", "check the disk"),
}
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)


class WriteError(OSError):
    """What could not be written, why, and what to do, in one line."""

    def __init__(
        self,
        path: Path | str,
        cause: OSError,
        *,
        needed: int | None = None,
        is_all: bool = False,
        hint: str = "",
    ) -> None:
        """Compose the message, checking free space now: remove half-written files first.

        Args:
            path: what was to be written, as the user knows it; or a name for it.
            cause: the system's error.
            needed: bytes that had to fit on the disk.
            is_all: whether ``needed`` is the full amount, or only the part that is known.
            hint: what to do afterwards.
        """
        self.path = path
        self.cause = cause
        self.needed = needed
        self.is_all = is_all
        self.hint = hint
        super().__init__(_message(path, cause, needed, is_all, hint))
        self.errno = cause.errno  # without strerror, which would replace our text

    def renewed(
        self,
        *,
        path: Path | str | None = None,
        needed: int | None = None,
        is_all: bool | None = None,
        hint: str | None = None,
    ) -> "WriteError":
        """The same error with what is known by now, checking free space again."""
        return WriteError(
            self.path if path is None else path,
            self.cause,
            needed=self.needed if needed is None else needed,
            is_all=self.is_all if is_all is None else is_all,
            hint=self.hint if hint is None else hint,
        )


@contextmanager
def explained(
    path: Path | str, *, needed: int | None = None, is_all: bool = False
) -> Generator[None, None, None]:
    """Turn the system's error about a path into a `WriteError`.

    A reader that closes its pipe early is not our error: BrokenPipeError passes unchanged.
    """
    try:
        yield
    except (WriteError, BrokenPipeError):
        raise
    except OSError as error:
        raise WriteError(path, error, needed=needed, is_all=is_all) from error


def _message(path: Path | str, cause: OSError, needed: int | None, is_all: bool, hint: str) -> str:
    reason, advice = _why(path, cause)
    if cause.errno in NO_ROOM and needed:
        reason += f": {'' if is_all else 'more than '}{format_bytes(needed)} needed"
        free = _free(path) if cause.errno == errno.ENOSPC and isinstance(path, Path) else None
        if free is not None:
            reason += f", {format_bytes(free)} free"
    return f"{path} cannot be written: {'; '.join(filter(None, (reason, advice)))}{hint}"


def _why(path: Path | str, cause: OSError) -> tuple[str, str]:
    above = _file_above(path) if isinstance(path, Path) else None
    if above is not None and cause.errno in (errno.ENOTDIR, errno.EEXIST):
        return f"{above} is a file, not a folder", "choose another place"
    return reason_and_advice(cause)


def reason_and_advice(error: OSError) -> tuple[str, str]:
    """The system's reason in our own words, and what to do about it, if that is known."""
    known = _REASONS.get(error.errno or 0)
    if known is not None:
        return known
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:], ""


def _file_above(path: Path) -> Path | None:
    """The file that stands where a folder is needed."""
    existing = _existing(path)
    return None if existing is None or os.path.isdir(existing) else existing


def _existing(path: Path) -> Path | None:
    """A path, or the nearest existing path above it."""
    return next((part for part in (path, *path.parents) if os.path.exists(part)), None)


def _free(path: Path) -> int | None:
    """Free bytes on the disk that holds a path; None if the path is special or they are unknown."""
    existing = _existing(path)
    if existing is None or not (existing.is_dir() or existing.is_file()):
        return None
    try:
        return shutil.disk_usage(existing).free
    except OSError:
        return None


def os_error(number: int) -> OSError:
    """The system's error for a number, as if a call had failed with it."""
    return OSError(number, os.strerror(number))

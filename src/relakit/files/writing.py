"""Everything that relakit writes for a user: files and folders that appear whole or not at all.

A new file or folder is written under a hidden name beside the old one (`leftovers`), synced to disk
and renamed, so readers see either the old content or the new, even if the writer is killed or the
power fails. Symbolic links are followed: what they point to is replaced. Anything that is not a
regular file, such as a device, a pipe or standard output, is written to directly. A replaced file
keeps its owner and mode; if it has several names (hard links), it loses the others.

Failures raise a `WriteError`: one line with the path, the reason and what to do.
"""

import errno
import os
import shutil
import stat
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from relakit.files.leftovers import hold, is_unfinished, sweep, temporary_name
from relakit.files.output_stream import Stream, buffered, check_access, open_special, silence
from relakit.files.write_errors import WriteError, explained, os_error

__all__ = [
    "WriteError",
    "append",
    "carry_over",
    "check_writable",
    "flush_standard_output",
    "make_folder",
    "open_to_append",
    "remove_folder",
    "standard_output",
    "sweep",
    "whole_file",
    "whole_folder",
    "write_whole",
]


_BLOCK_BYTES: Final = 512
"""The unit of st_blocks, whatever the block size of the file system."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, replacing any that exists; missing folders are created."""
    with whole_file(path, size=len(content)) as file:
        file.write(content)


@contextmanager
def whole_file(
    path: Path, *, size: int | None = None, sweeps: bool = True
) -> Generator[BinaryIO, None, None]:
    """A file to write into that becomes ``path`` at the end; if the block raises, nothing is left.

    Args:
        path: missing folders are created.
        size: how many bytes the file will have, if known.
        sweeps: remove what killed writers of ``path`` left, which scans the whole folder. Not
            needed for one of many files in a folder that was swept before.

    Raises:
        WriteError: the file cannot be written.
    """
    with explained(path):
        special = open_special(path)
    if special is not None:
        with buffered(special, path) as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    temporary = temporary_name(target)
    sync = not is_unfinished(target)  # else its folder is synced as a whole
    written = 0
    try:
        with explained(path):
            handle = _begin_file(temporary, target, sweeps=sweeps)
        with buffered(handle, path) as file:
            yield file
            file.flush()
            written = os.fstat(handle).st_size
            if sync:
                with explained(path):
                    _sync_handle(handle)
        with explained(path):
            os.replace(temporary, target)
            if sync:
                _sync(target.parent)
    except WriteError as error:
        if error.path != path:
            raise  # about another file, which the block wrote
        written = max(written, error.needed or 0)
        _remove(temporary)
        raise error.renewed(needed=size or written, is_all=size is not None) from None
    finally:
        _remove(temporary)


@contextmanager
def whole_folder(path: Path, *, size: int | None = None) -> Generator[Path, None, None]:
    """A folder to write into that becomes ``path`` at the end, replacing what was there.

    If the block raises, nothing is left of it and ``path`` is unchanged.

    Args:
        path: missing parents are created.
        size: how many bytes its files will have, if known.

    Raises:
        WriteError: the folder, or a file in it, cannot be written.
    """
    target = Path(os.path.realpath(path))
    temporary = temporary_name(target)
    handle = None
    try:
        with explained(path):
            os.makedirs(target.parent, exist_ok=True)
            sweep(target.parent, target.name)
            os.mkdir(temporary)
            handle = os.open(temporary, os.O_RDONLY)
            hold(handle)
        yield temporary
        with explained(path):
            _sync_tree(temporary)
            _put_in_place(temporary, target)
    except OSError as error:
        found = _in_final_words(error, temporary, path)
        if found is None:
            raise
        needed = size or _tree_size(temporary) + (found.needed or 0)
        _remove(temporary)
        raise found.renewed(needed=needed, is_all=size is not None) from None
    finally:
        if handle is not None:
            os.close(handle)
        _remove(temporary)


def carry_over(path: Path, folder: Path) -> None:
    """Put an unchanged file into the new folder that will replace the file's own folder."""
    target = folder / path.name
    with explained(target):
        try:
            os.link(path, target)
        except OSError:  # a file system without hard links
            shutil.copyfile(path, target)


def append(path: Path, content: bytes) -> None:
    """Append all of the content to a file or nothing, without waiting for the disk.

    Raises:
        WriteError: the file cannot be written.
    """
    with open_to_append(path) as file:
        handle = file.fileno()
        before = os.fstat(handle).st_size
        try:
            with explained(path, needed=len(content), is_all=True):
                _write_all(handle, content)
        except BaseException:
            with suppress(OSError):  # a device or a pipe cannot be truncated
                os.ftruncate(handle, before)
            raise


@contextmanager
def open_to_append(path: Path) -> Generator[BinaryIO, None, None]:
    """A file to which others can append, such as a process that we start."""
    with explained(path):
        os.makedirs(path.parent, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    with os.fdopen(handle, "ab", buffering=0) as file:
        yield file


@contextmanager
def standard_output() -> Generator[BinaryIO, None, None]:
    """Standard output for bytes; failing to write there raises `WriteError`, too."""
    if sys.stdout is None:
        raise WriteError("standard output", os_error(errno.EBADF))
    stream = sys.stdout.buffer
    try:
        with buffered(Stream(stream), "standard output") as file:
            yield file
    except OSError as error:
        if isinstance(error, BrokenPipeError) or getattr(error, "path", "") == "standard output":
            silence(stream)  # Python would retry, and complain, when it exits
        raise


def opened_output(path: Path | None) -> AbstractContextManager[BinaryIO]:
    """The file, opened with `whole_file`; for None, `standard_output`."""
    return standard_output() if path is None else whole_file(path)


def flush_standard_output() -> None:
    """Flush what was printed now, so that a failure to write it raises `WriteError`."""
    if sys.stdout is None:
        return  # closed by whoever started us; what is printed goes nowhere
    try:
        with explained("standard output"):
            sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout.buffer)  # the reader has had enough
    except WriteError:
        silence(sys.stdout.buffer)
        raise


def make_folder(path: Path) -> None:
    """Create a folder and its parents, unless it exists."""
    with explained(path):
        os.makedirs(path, exist_ok=True)


def remove_folder(path: Path) -> None:
    """Remove a folder in one step: an interruption leaves no half of it under its name."""
    with explained(path):
        removed = temporary_name(path)
        os.rename(path, removed)
        shutil.rmtree(removed, ignore_errors=True)


def check_writable(path: Path, *, is_folder: bool = False) -> None:
    """Raise `WriteError` before long work if a file or folder certainly cannot be written there."""
    with explained(path):
        if path.is_dir() and not is_folder:
            raise os_error(errno.EISDIR)
        special = open_special(path, only_look=True)
        if special is not None:
            return
        target = Path(os.path.realpath(path))
        temporary = temporary_name(target)
        try:
            os.close(_begin_file(temporary, target))
        finally:
            _remove(temporary)


def _write_all(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _begin_file(temporary: Path, target: Path, *, sweeps: bool = True) -> int:
    """Open a temporary file beside the target, with the target's future mode and owner."""
    before = os.stat(target) if target.exists() else None
    if before is not None:
        check_access(target)
    os.makedirs(target.parent, exist_ok=True)
    if sweeps:
        sweep(target.parent, target.name)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        hold(handle)
        if before is not None:
            _make_like(handle, before)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _make_like(handle: int, before: os.stat_result) -> None:
    with suppress(OSError):  # only root may give files away
        os.fchown(handle, before.st_uid, before.st_gid)
    with suppress(OSError):
        os.fchmod(handle, stat.S_IMODE(before.st_mode))


def _put_in_place(temporary: Path, target: Path) -> None:
    """Give a folder its final name; whatever stops us, the folder that was there keeps it."""
    if not os.path.isdir(target) or not os.listdir(target):
        if target.exists():
            _inherit(temporary, target)
        os.rename(temporary, target)  # over an empty folder, too
        _sync(target.parent)
        return
    replaced = temporary_name(target, "old")
    handle = os.open(target, os.O_RDONLY)
    try:
        hold(handle)
        _inherit(temporary, target)
        os.rename(target, replaced)
        try:
            os.rename(temporary, target)
        except BaseException:
            os.rename(replaced, target)
            raise
        try:
            _sync(target.parent)
        finally:
            shutil.rmtree(replaced, ignore_errors=True)
    finally:
        os.close(handle)


def _inherit(temporary: Path, target: Path) -> None:
    handle = os.open(temporary, os.O_RDONLY)
    try:
        _make_like(handle, os.stat(target))
    finally:
        os.close(handle)


def _in_final_words(error: OSError, temporary: Path, path: Path) -> WriteError | None:
    """An error about the temporary folder, as one about the final folder; None for other errors.

    If the block could not read some other file, that error is not ours.
    """
    where = error.path if isinstance(error, WriteError) else error.filename
    if where == path:
        return error if isinstance(error, WriteError) else None
    if not isinstance(where, (str, os.PathLike)):
        return None
    inside = Path(where)
    if temporary != inside and temporary not in inside.parents:
        return None
    cause = error.cause if isinstance(error, WriteError) else error
    needed = error.needed if isinstance(error, WriteError) else None
    return WriteError(path / inside.relative_to(temporary), cause, needed=needed)


def _tree_size(folder: Path) -> int:
    """Bytes that the files in a folder take on disk, where a small file takes a whole block."""
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            found = path.stat()
            size += max(found.st_size, _BLOCK_BYTES * found.st_blocks) if path.is_file() else 0
    return size


def _sync_tree(folder: Path) -> None:
    for parent, _, files in os.walk(folder):
        for name in files:
            _sync(Path(parent, name))
        _sync(Path(parent))


def _sync(path: Path) -> None:
    """Sync a file's content, or a folder's names, to disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:
        return  # a folder that may be written to, but not read
    try:
        _sync_handle(handle)
    finally:
        os.close(handle)


def _sync_handle(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has no disk behind it
            raise


def _remove(path: Path) -> None:
    """Remove a temporary file or folder, if it still exists."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()

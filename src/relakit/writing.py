"""Files and folders that appear with all their content, or not at all.

Everything is written under a hidden temporary name in the same folder and renamed at the end, so
that readers see either the old content or the new, even if the writer is killed.
"""

import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, replacing the one that was there."""
    temporary = _beside(path)
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path) -> Generator[BinaryIO, None, None]:
    """A file to write into that becomes ``path`` at the end; if the block raises, nothing stays.

    If ``path`` exists but is not a regular file, such as a device or a pipe, it is written to
    directly.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    temporary = _beside(path)
    try:
        with temporary.open("wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_folder(
    path: Path, *, sync: bool = False, only_writer: bool = False
) -> Generator[Path, None, None]:
    """A folder to write into that becomes ``path`` at the end, replacing what was there.

    If the block raises, nothing is left of it and ``path`` is as before.

    Args:
        path: missing parents are made.
        sync: have every file on the disk before the folder gets its name, so that it is whole even
            after a power failure.
        only_writer: no one else writes this folder at the same time. Then the temporary folder
            always has the same name, and leftovers of an attempt that was killed are removed.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    replaced = _beside(path)
    if only_writer:
        temporary = path.with_name(f".{path.name}.unfinished")
        shutil.rmtree(temporary, ignore_errors=True)
    else:
        temporary = _beside(path)
    temporary.mkdir()
    try:
        yield temporary
        if sync:
            for file in temporary.rglob("*"):
                if file.is_file():
                    _sync(file)
        if path.exists():
            os.rename(path, replaced)
        os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if path.exists():
            shutil.rmtree(replaced, ignore_errors=True)
        elif replaced.exists():
            os.rename(replaced, path)


def _beside(path: Path) -> Path:
    """A hidden name in the same folder that nothing else has."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

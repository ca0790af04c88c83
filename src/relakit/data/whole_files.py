"""Files and folders that are there with all their content or not at all."""

import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; whoever reads it meanwhile finds what was there before."""
    temporary = _beside(path)
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path) -> Generator[BinaryIO, None, None]:
    """A file to write into that becomes ``path`` at the end; if the block raises, none of it stays.

    What is there and no file, such as a device, is written to as it is.
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
def whole_folder(path: Path) -> Generator[Path, None, None]:
    """A folder to write into that becomes ``path`` at the end, replacing what was there.

    If the block raises, nothing of it stays and ``path`` is as before.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, replaced = _beside(path), _beside(path)
    temporary.mkdir()
    try:
        yield temporary
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

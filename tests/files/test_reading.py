"""Files as bytes: what cannot be read says why, and digests tell files apart."""

import hashlib
import os
import tracemalloc
from pathlib import Path

import pytest

from relakit.files.reading import file_digest, open_file


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none", "none: there is no such file"),
        ("file/inside", "file/inside: there is no such file"),
        ("folder", "folder is a folder; name a file"),
        ("x" * 300, "x cannot be read: its name is too long; choose a shorter one"),
    ],
)
def test_what_cannot_be_read(name: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=f"{problem}$"):
        open_file(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0o000)
    with pytest.raises(PermissionError, match="cannot be read: permission denied; have its owner"):
        open_file(tmp_path / "file")


def test_the_digest_of_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        for _ in range(16):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    try:
        found = file_digest(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == hashlib.sha256(bytes(1 << 24)).hexdigest()
    assert peak < 1 << 20

"""What may be in the folder of a filter before it is written."""

import os
from pathlib import Path

import pytest

from relakit.clean.filter_files import PLANTED_SCORES, SCORES, check_filter_folder
from relakit.files.leftovers import temporary_name

GONE = 4194999
"""No process has this number: it is above what the kernel gives out."""


def left_by_the_dead(path: Path) -> Path:
    """The name under which a killed process was writing."""
    return path.with_name(temporary_name(path).name.replace(f"-{os.getpid()}-", f"-{GONE}-"))


@pytest.mark.parametrize("name", [SCORES, PLANTED_SCORES, f"{SCORES}.json", "planted.tsv.gz"])
def test_what_a_killed_command_was_writing_is_removed(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{SCORES}.parts").mkdir()
    left_by_the_dead(tmp_path / name).write_bytes(b"half")
    check_filter_folder(tmp_path, scores=None)
    assert [path.name for path in tmp_path.iterdir()] == [f"{SCORES}.parts"]


def test_parts_that_a_killed_command_was_removing(tmp_path: Path) -> None:
    (tmp_path / SCORES).touch()
    left_by_the_dead(tmp_path / f"{SCORES}.parts").mkdir()
    check_filter_folder(tmp_path, scores=None)
    assert [path.name for path in tmp_path.iterdir()] == [SCORES]


def test_a_folder_that_a_killed_command_was_replacing_comes_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    replaced = left_by_the_dead(out).with_suffix(".old")
    replaced.mkdir()
    (replaced / SCORES).write_bytes(b"scores")
    check_filter_folder(out, scores=None)
    assert (out / SCORES).read_bytes() == b"scores"


def test_what_is_of_nobody_stays(tmp_path: Path) -> None:
    (tmp_path / ".mine.tmp").touch()
    with pytest.raises(FileExistsError, match=r"holds '.mine.tmp', which is not part of"):
        check_filter_folder(tmp_path, scores=None)

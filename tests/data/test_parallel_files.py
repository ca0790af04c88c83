"""Pairs from two files or from columns, and what is said about files that do not fit together."""

import re
from pathlib import Path

import pytest

from relakit.data.parallel_files import ParallelFiles, read_pairs


@pytest.fixture
def files(tmp_path: Path) -> ParallelFiles:
    return ParallelFiles(tmp_path / "train.en", tmp_path / "train.de")


def write(files: ParallelFiles, source: str, target: str) -> None:
    assert files.target is not None
    files.source.write_bytes(source.encode())
    files.target.write_bytes(target.encode())


def test_two_files(files: ParallelFiles) -> None:
    write(files, "a\n\nc\td\u2028\n", "A\r\nB\r\nC")
    assert list(read_pairs(files)) == [("a", "A"), ("", "B"), ("c\td\u2028", "C")]


def test_columns(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_bytes(b"a\tA\nb\tB\tmore\tcolumns\r\n\t\nd \t D")
    assert list(read_pairs(ParallelFiles(path))) == [("a", "A"), ("b", "B"), ("", ""), ("d ", " D")]


@pytest.mark.parametrize(("sources", "targets"), [(1014, 1013), (3, 5000), (5000, 3)])
def test_different_numbers_of_lines(files: ParallelFiles, sources: int, targets: int) -> None:
    write(files, "x\n" * sources, "y\n" * targets)
    with pytest.raises(ValueError, match="must be the translation") as caught:
        list(read_pairs(files))
    assert str(caught.value).startswith(
        f"{files.source} has {sources:,} lines, {files.target} has {targets:,}: line n of one"
    )


@pytest.mark.parametrize(("source", "target"), [("", "y\n"), ("x\n", ""), ("", "")])
def test_an_empty_file(files: ParallelFiles, source: str, target: str) -> None:
    write(files, source, target)
    culprit = files.target if source else files.source
    with pytest.raises(ValueError, match=f"^{re.escape(str(culprit))} is empty$"):
        list(read_pairs(files))


@pytest.mark.parametrize(("source", "target"), [(" \n\n", "y\nz\n"), ("x\ny\n", "\t\n\n")])
def test_a_file_of_blank_lines(files: ParallelFiles, source: str, target: str) -> None:
    write(files, source, target)
    culprit = files.target if source.strip() else files.source
    expected = f"^{re.escape(str(culprit))} has no text: all its 2 lines are blank$"
    with pytest.raises(ValueError, match=expected):
        list(read_pairs(files))


def test_a_blank_table(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_text("\t\n")
    with pytest.raises(ValueError, match="has no text: its only line is blank"):
        list(read_pairs(ParallelFiles(path)))


def test_an_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.touch()
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} is empty$"):
        list(read_pairs(ParallelFiles(path)))


@pytest.mark.parametrize("line", ["no tab here", ""])
def test_a_line_without_a_tab(tmp_path: Path, line: str) -> None:
    path = tmp_path / "train.tsv"
    path.write_text(f"a\tb\n{line}\nc\td\n")
    with pytest.raises(ValueError, match="every line needs a source, a tab and a target") as caught:
        list(read_pairs(ParallelFiles(path)))
    assert str(caught.value).startswith(f"{path}, line 2: no tab")


def test_pairs_before_a_mistake_are_still_read(files: ParallelFiles) -> None:
    write(files, "a\nb\n", "A\n")
    pairs = read_pairs(files)
    assert next(pairs) == ("a", "A")
    with pytest.raises(ValueError, match="2 lines"):
        next(pairs)

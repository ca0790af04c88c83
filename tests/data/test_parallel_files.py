"""Pairs from two files or from columns, and what is said about files that do not fit together."""

import re
from pathlib import Path

import pytest

from relakit.data.parallel_files import (
    ParallelFiles,
    guess_format,
    read_numbered_pairs,
    read_pairs,
    spread_evenly,
)


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


def test_a_line_without_a_tab(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_text("a\tb\nno tab here\nc\td\n")
    with pytest.raises(ValueError, match="every line needs a source, a tab and a target") as caught:
        list(read_pairs(ParallelFiles(path)))
    assert str(caught.value).startswith(f"{path}, line 2: no tab")


def test_pairs_before_a_mistake_are_still_read(files: ParallelFiles) -> None:
    write(files, "a\nb\n", "A\n")
    pairs = read_pairs(files)
    assert next(pairs) == ("a", "A")
    with pytest.raises(ValueError, match="2 lines"):
        next(pairs)


def test_numbers_are_those_of_lines(files: ParallelFiles) -> None:
    write(files, "a\n\nc\n", "A\nB\n\n")
    pairs = list(read_numbered_pairs(files))
    assert pairs == [(1, "a", "A"), (2, "", "B"), (3, "c", "")]
    assert [pair.has_blank_side for pair in pairs] == [False, True, True]


def test_columns_by_number(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_text("0.5\tA\tx\ta\n\n0.7\tB\ty\tb\n")
    files = ParallelFiles(path, columns=("4", "2"))
    assert list(read_numbered_pairs(files)) == [(1, "a", "A"), (2, "", ""), (3, "b", "B")]


def test_columns_by_name(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_text("score\tde\ten\r\n0.5\tA\ta\n0.7\tB\tb\n")
    files = ParallelFiles(path, columns=("en", "de"))
    assert list(read_numbered_pairs(files)) == [(2, "a", "A"), (3, "b", "B")]


@pytest.mark.parametrize(
    ("content", "columns", "problem"),
    [
        ("a\tb\n", ("1", "3"), ", line 1: it has 2 columns, but column 3 is asked for"),
        ("en\tde\n", ("en", "fr"), ", line 1: no column called 'fr'; there are en, de"),
        ("en\ten\tde\n", ("en", "de"), ", line 1: two columns called 'en'; there are en, en, de"),
        ("en\tde\na\n", ("en", "de"), ", line 2: no tab; every line needs a source, a tab and"),
        ("en\tde\n", ("en", "de"), " has only the line that names its columns, and no pairs"),
        ("\nen\tde\n\n", ("en", "de"), " has only the line that names its columns, and no pairs"),
        ("\n\n", ("en", "de"), " has no text: all its 2 lines are blank"),
    ],
)
def test_columns_that_are_not_there(
    tmp_path: Path, content: str, columns: tuple[str, str], problem: str
) -> None:
    path = tmp_path / "table"
    path.write_text(content)
    with pytest.raises(ValueError, match=re.escape(f"{path}{problem}")):
        list(read_pairs(ParallelFiles(path, columns=columns)))


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (("2", "2"), "both column '2'"),
        (("1", "01"), "both column '1'"),
        (("en", "en"), "both column 'en'"),
        (("0", "1"), "counted from 1"),
        (("1", "00"), "counted from 1"),
    ],
)
def test_impossible_columns(columns: tuple[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ParallelFiles(Path("x"), columns=columns)


def test_bars(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a b ||| A B\n\n ||| C\nd|||\n")
    files = ParallelFiles(path, format="bars")
    expected = [(1, "a b", "A B"), (2, "", ""), (3, "", "C"), (4, "d", "")]
    assert list(read_numbered_pairs(files)) == expected


@pytest.mark.parametrize(("line", "times"), [("a", 0), ("a ||| b ||| c", 2)])
def test_bars_that_are_missing_or_too_many(tmp_path: Path, line: str, times: int) -> None:
    path = tmp_path / "text"
    path.write_text(f"x ||| y\n{line}\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 2: |||")) as caught:
        list(read_pairs(ParallelFiles(path, format="bars")))
    assert str(caught.value).endswith(f"not {times} times")


def test_units_of_a_memory(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    path.write_text(
        '<tmx><body><tu><tuv xml:lang="en"><seg>a</seg></tuv></tu><tu><tuv xml:lang="de"><seg>B'
        "</seg></tuv></tu></body></tmx>"
    )
    files = ParallelFiles(path, format="tmx", languages=("en", "de"))
    assert list(read_numbered_pairs(files)) == [(1, "a", ""), (2, "", "B")]
    assert files.unit == "unit"


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("memory.TMX.gz", "", "tmx"),
        ("pairs", "\n\na\tb ||| c\n", "tsv"),
        ("pairs", "a b ||| c\n", "bars"),
    ],
)
def test_formats_are_told_apart(tmp_path: Path, name: str, content: str, format: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert guess_format(path) == format


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("\none\n", ", line 2: neither a tab nor ||| between a source and a target"),
        ("", " is empty"),
        ("\n \n", " has no text"),
    ],
)
def test_formats_that_cannot_be_told(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "pairs"
    path.write_text(content)
    with pytest.raises(ValueError, match=re.escape(f"{path}{problem}")):
        guess_format(path)


@pytest.mark.parametrize(
    ("total", "most", "expected"),
    [
        (10, 5, [0, 2, 4, 6, 8]),
        (10, 3, [0, 4, 7]),
        (10, 1, [0]),
        (3, 10, [0, 1, 2]),
        (0, 10, []),
    ],
)
def test_some_from_all_over(total: int, most: int, expected: list[int]) -> None:
    pairs = [(str(number), "") for number in range(total)]
    assert [int(source) for source, _ in spread_evenly(pairs, total, most)] == expected

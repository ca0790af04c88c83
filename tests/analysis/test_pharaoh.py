"""Alignments as text: what is read, what is written, and what is refused."""

import gzip
from pathlib import Path

import pytest

from relakit.analysis import GoldAlignment, parse_pharaoh, read_pharaoh, write_pharaoh
from relakit.data.generated import generate_pairs, write_corpus


def gold(sure: set[tuple[int, int]], possible: set[tuple[int, int]]) -> GoldAlignment:
    return GoldAlignment(frozenset(sure), frozenset(possible))


@pytest.mark.parametrize(
    ("line", "first", "expected"),
    [
        ("", 0, gold(set(), set())),
        ("0-0 1-2", 0, gold({(0, 0), (1, 2)}, set())),
        ("  10-9\t11p42 ", 0, gold({(10, 9)}, {(11, 42)})),
        ("1?2 3P4 5-6? 7-8p", 0, gold(set(), {(1, 2), (3, 4), (5, 6), (7, 8)})),
        ("1-1 2?3", 1, gold({(0, 0)}, {(1, 2)})),
        ("0-0 0-0", 0, gold({(0, 0)}, set())),
        # A link that is said to be both is sure.
        ("0?0 0-0", 0, gold({(0, 0)}, set())),
    ],
)
def test_lines(line: str, first: int, expected: GoldAlignment) -> None:
    assert parse_pharaoh(line, first=first) == expected


@pytest.mark.parametrize("item", ["0", "0-", "-1", "0--1", "a-b", "0:1", "0?1?", "0-1-2", "٣-1"])
def test_what_is_no_link(item: str, tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text(f"0-0\n1-1 {item}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="is no link; write SOURCE-TARGET") as caught:
        list(read_pharaoh(path))
    assert str(caught.value).startswith(f"{path}, line 2: {item!r}")


def test_a_file_that_counts_from_0_read_as_from_1(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text("1-1 0-2\n")
    with pytest.raises(ValueError, match=r"line 1: '0-2' has a word below 1.* counted from 0"):
        list(read_pharaoh(path, first=1))


@pytest.mark.parametrize("first", [0, 1])
def test_there_and_back(first: int, tmp_path: Path) -> None:
    alignments = [gold({(2, 0), (0, 10)}, {(1, 1)}), gold(set(), set()), gold(set(), {(0, 0)})]
    path = tmp_path / "links"
    write_pharaoh(path, iter(alignments), first=first)
    assert list(read_pharaoh(path, first=first)) == alignments
    assert [file.name for file in tmp_path.iterdir()] == ["links"]


def test_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "links"
    write_pharaoh(path, [gold({(10, 0), (2, 3)}, {(2, 1)}), gold(set(), set())], first=1)
    assert path.read_text() == "3?2 3-4 11-1\n\n"


def test_compressed(tmp_path: Path) -> None:
    path = tmp_path / "gold.gz"
    path.write_bytes(gzip.compress(b"0-0\n1?1\n"))
    assert list(read_pharaoh(path)) == [gold({(0, 0)}, set()), gold(set(), {(1, 1)})]


def test_the_links_of_the_generated_corpus(tmp_path: Path) -> None:
    write_corpus(tmp_path, sizes={"test": 20}, seed=3)
    expected = [gold(set(p.links), set()) for p in generate_pairs(20, seed=3, split="test")]
    assert list(read_pharaoh(tmp_path / "test.links")) == expected

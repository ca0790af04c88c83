"""Gold links in three formats, and how the format of a file is found."""

import gzip
from pathlib import Path

import pytest

from relakit.analysis import (
    GoldAlignment,
    GoldFormatChoice,
    parse_pharaoh,
    read_gold,
    read_pharaoh,
)
from relakit.analysis.gold import find_format
from relakit.data.generated import generate_pairs, write_corpus


def gold(sure: set[tuple[int, int]], possible: set[tuple[int, int]] | None = None) -> GoldAlignment:
    return GoldAlignment(frozenset(sure), frozenset(possible or set()))


def test_possible_includes_sure() -> None:
    gold = GoldAlignment(frozenset({(0, 0)}), frozenset({(1, 2)}))
    assert gold.possible == {(0, 0), (1, 2)}
    assert gold.reversed() == GoldAlignment(frozenset({(0, 0)}), frozenset({(2, 1)}))


EXPECTED = [gold({(0, 0), (1, 2)}, {(2, 1)}), gold(set()), gold({(3, 3)})]
FILES: dict[GoldFormatChoice, str] = {
    "pharaoh": "0-0 1-2 2?1\n\n3-3\n",
    "talp": "1-1 2-3 3p2\n\n4-4\n",
    "naacl": "0001 1 1 S\n1 2 3\n1 3 2 P 0.75\n1 0 4 S\n1 2 0\n3 4 4 S 1\n",
}


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("format", FILES)
def test_three_formats(format: GoldFormatChoice, tmp_path: Path) -> None:
    path = write(tmp_path, "links", FILES[format])
    assert list(read_gold(path, format=format)) == EXPECTED
    assert find_format(path) == format
    assert list(read_gold(path)) == EXPECTED


def test_endings_decide_before_content(tmp_path: Path) -> None:
    assert find_format(write(tmp_path, "a.talp", "1-1\n")) == "talp"
    assert find_format(write(tmp_path, "a.wa", "")) == "naacl"
    assert find_format(write(tmp_path, "a.pharaoh", "1p1\n")) == "pharaoh"
    packed = tmp_path / "test.en-de.naacl.gz"
    packed.write_bytes(gzip.compress(b"1 2 2\n"))
    assert list(read_gold(packed)) == [gold({(1, 1)})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "pharaoh"),
        ("\n1-1 2-2\n", "pharaoh"),
        ("1-1 2p2\n", "talp"),
        ("1-1 2p2\n3-3 0-1\n", "pharaoh"),
        ("1-1 2p2\n3-0\n", "pharaoh"),
        ("1p0\n", "pharaoh"),
        ("10-10 20p10\n", "talp"),
        ("\n3 1 1\n", "naacl"),
    ],
)
def test_content(text: str, expected: str, tmp_path: Path) -> None:
    assert find_format(write(tmp_path, "links", text)) == expected


def test_naacl_from_zero(tmp_path: Path) -> None:
    path = write(tmp_path, "a.naacl", "0 0 1 S\n")
    assert list(read_gold(path, first=0)) == [gold({(0, 1)})]
    with pytest.raises(ValueError, match=r"a\.naacl, line 1: it has sentence 0, below 1"):
        list(read_gold(path))


@pytest.mark.parametrize("line", ["1 2", "1 2 3 X", "1 2 3 S 0.5 more", "1-2", "a 1 1"])
def test_what_is_no_naacl_link(line: str, tmp_path: Path) -> None:
    path = write(tmp_path, "a.naacl", f"1 1 1\n{line}\n")
    with pytest.raises(ValueError, match=rf"a\.naacl, line 2: '{line}' is not a link"):
        list(read_gold(path))


def test_naacl_sentences_are_not_counted_up_to_a_mistyped_one(tmp_path: Path) -> None:
    path = write(tmp_path, "a.naacl", "1 1 1\n500000000 1 1\n")
    expected = r"a\.naacl, line 2: it has sentence 500,000,000; there may be 10,000,000 at most"
    with pytest.raises(ValueError, match=expected):
        list(read_gold(path))


def test_an_endless_item_is_not_repeated_in_the_error(tmp_path: Path) -> None:
    path = write(tmp_path, "gold", "1-" + "9" * 100_000 + "\n")
    with pytest.raises(ValueError, match=r"line 1: '1-9999.*\.\.\..*' is not a link") as caught:
        list(read_pharaoh(path))
    assert len(str(caught.value)) < 300


def test_word_zero_in_talp(tmp_path: Path) -> None:
    path = write(tmp_path, "a.talp", "1-1\n0-1\n")
    with pytest.raises(ValueError, match=r"a\.talp, line 2: '0-1' has a word below 1"):
        list(read_gold(path))


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown format 'giza'; choose one of auto, pharaoh"):
        read_gold(tmp_path / "x", format="giza")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "first", "expected"),
    [
        ("", 0, gold(set())),
        ("0-0 1-2", 0, gold({(0, 0), (1, 2)}, set())),
        ("  10-9\t11p42 ", 0, gold({(10, 9)}, {(11, 42)})),
        ("1?2 3P4 5-6? 7-8p", 0, gold(set(), {(1, 2), (3, 4), (5, 6), (7, 8)})),
        ("1-1 2?3", 1, gold({(0, 0)}, {(1, 2)})),
        ("0-0 0-0", 0, gold({(0, 0)})),
        # A link that is said to be both is sure.
        ("0?0 0-0", 0, gold({(0, 0)})),
    ],
)
def test_lines(line: str, first: int, expected: GoldAlignment) -> None:
    assert parse_pharaoh(line, first=first) == expected


@pytest.mark.parametrize("item", ["0", "0-", "-1", "0--1", "a-b", "0:1", "0?1?", "0-1-2", "٣-1"])
def test_what_is_no_link(item: str, tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text(f"0-0\n1-1 {item}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="is not a link; write SOURCE-TARGET") as caught:
        list(read_pharaoh(path))
    assert str(caught.value).startswith(f"{path}, line 2: {item!r}")


def test_a_file_that_counts_from_0_read_as_from_1(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text("1-1 0-2\n")
    with pytest.raises(
        ValueError,
        match=r"line 1: '0-2' has a word below 1.* counts from 0, say so: --gold-first 0",
    ):
        list(read_pharaoh(path, first=1))


def test_compressed(tmp_path: Path) -> None:
    path = tmp_path / "gold.gz"
    path.write_bytes(gzip.compress(b"0-0\n1?1\n"))
    assert list(read_pharaoh(path)) == [gold({(0, 0)}), gold(set(), {(1, 1)})]


def test_the_links_of_the_generated_corpus(tmp_path: Path) -> None:
    write_corpus(tmp_path, sizes={"test": 20}, seed=3)
    expected = [gold(set(p.links)) for p in generate_pairs(20, seed=3, split="test")]
    assert list(read_pharaoh(tmp_path / "test.links")) == expected

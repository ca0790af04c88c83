"""Gold links in three formats, and how the format of a file is found."""

import gzip
from pathlib import Path

import pytest

from relakit.analysis import (
    GoldAlignment,
    GoldFormatChoice,
    read_analysis_pairs,
    read_gold,
    read_gold_pairs,
)
from relakit.analysis.gold_formats import find_format
from relakit.data.parallel_files import ParallelFiles


def gold(sure: set[tuple[int, int]], possible: set[tuple[int, int]] | None = None) -> GoldAlignment:
    return GoldAlignment(frozenset(sure), frozenset(possible or set()))


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
    with pytest.raises(ValueError, match=rf"a\.naacl, line 2: '{line}' is no link"):
        list(read_gold(path))


def test_word_zero_in_talp(tmp_path: Path) -> None:
    path = write(tmp_path, "a.talp", "1-1\n0-1\n")
    with pytest.raises(ValueError, match=r"a\.talp, line 2: '0-1' has a word below 1"):
        list(read_gold(path))


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown format 'giza'; choose one of auto, pharaoh"):
        read_gold(tmp_path / "x", format="giza")  # type: ignore[arg-type]


def test_naacl_needs_no_line_for_every_pair(tmp_path: Path) -> None:
    files = ParallelFiles(write(tmp_path, "s", "a\nb\nc\n"), write(tmp_path, "t", "A\nB\nC\n"))
    links = write(tmp_path, "l.naacl", "2 1 1 S\n")
    found = [pair.gold for pair in read_gold_pairs(files, links)]
    assert found == [gold(set()), gold({(0, 0)}), gold(set())]
    links = write(tmp_path, "l.naacl", "5 1 1 S\n")
    with pytest.raises(ValueError, match=r"s has 3 lines, .*l\.naacl has links of sentence 5"):
        list(read_gold_pairs(files, links))
    links = write(tmp_path, "l.naacl", "3 2 1 S\n")
    with pytest.raises(ValueError, match=r"l\.naacl, sentence 3: .* the source has 1 words"):
        list(read_gold_pairs(files, links))


def test_tags_of_target_words(tmp_path: Path) -> None:
    files = ParallelFiles(write(tmp_path, "s", "a b\nc\n"), write(tmp_path, "t", "A.\nB c\n"))
    tags = write(tmp_path, "tags", "NOUN PUNCT\nNOUN  VERB\n")
    found = list(read_analysis_pairs(files, tags=tags))
    assert [pair.target_tags for pair in found] == [("NOUN", "PUNCT"), ("NOUN", "VERB")]
    assert found[0].gold is None
    tags = write(tmp_path, "tags", "NOUN PUNCT\nNOUN\n")
    with pytest.raises(ValueError, match=r"tags, line 2: there are 1 tags, the target has 2 words"):
        list(read_analysis_pairs(files, tags=tags))
    tags = write(tmp_path, "tags", "NOUN PUNCT\n")
    with pytest.raises(ValueError, match=r"s has 2 lines, .*tags has 1: line n of the tags"):
        list(read_analysis_pairs(files, tags=tags))

"""Pairs with gold links from files, and what is wrong with files."""

from dataclasses import replace
from pathlib import Path

import pytest

from relakit.analysis import (
    GoldAlignment,
    GoldPair,
    generated_gold_pair,
    read_analysis_pairs,
    read_gold_pairs,
)
from relakit.data.generated import generate_pairs, write_corpus
from relakit.data.parallel_files import ParallelFiles


def write(folder: Path, source: str, target: str, links: str) -> tuple[ParallelFiles, Path]:
    for name, text in (("source", source), ("target", target), ("links", links)):
        (folder / name).write_text(text, encoding="utf-8")
    return ParallelFiles(folder / "source", folder / "target"), folder / "links"


def test_files_of_the_generated_corpus(tmp_path: Path) -> None:
    write_corpus(tmp_path, sizes={"test": 30})
    files = ParallelFiles(tmp_path / "test.en", tmp_path / "test.de")
    expected = [generated_gold_pair(pair) for pair in generate_pairs(30, split="test")]
    links, tags = tmp_path / "test.links", tmp_path / "test.de.tags"
    without_tags = [replace(pair, target_tags=None) for pair in expected]
    assert list(read_gold_pairs(files, links)) == without_tags
    for pair, found in zip(
        expected, read_analysis_pairs(files, gold=links, tags=tags), strict=True
    ):
        assert vars(found) == vars(pair)


def test_one_based_reversed_and_tokenized(tmp_path: Path) -> None:
    files, links = write(tmp_path, "Mr. X .\n", "Herr X .\n", "1-1 2p2 3-3\n")
    (pair,) = read_gold_pairs(files, links, first=1, tokenized=True)
    assert pair.source_words == ((0, 3), (4, 5), (6, 7))
    assert pair.gold == GoldAlignment(frozenset({(0, 0), (2, 2)}), frozenset({(1, 1)}))
    files, links = write(tmp_path, "A b\n", "c\n", "0-1\n")
    (pair,) = read_gold_pairs(files, links, reverse=True)
    assert pair.gold.sure == {(1, 0)}


def test_links_out_of_range_name_the_line(tmp_path: Path) -> None:
    files, links = write(tmp_path, "A b\nA b\n", "c\nc\n", "0-0\n0-0 1?1\n")
    with pytest.raises(ValueError, match=r"word 1 and target word 1 .* target has 1 words") as e:
        list(read_gold_pairs(files, links))
    assert str(e.value).startswith(f"{links}, line 2: ")
    with pytest.raises(ValueError, match="source has 0 words"):
        GoldPair("", "c", (), ((0, 1),), GoldAlignment(frozenset({(0, 0)})))


@pytest.mark.parametrize(("links", "expected"), [("0-0\n", "1"), ("0-0\n\n\n\n", "4"), ("", "0")])
def test_numbers_of_lines(links: str, expected: str, tmp_path: Path) -> None:
    files, path = write(tmp_path, "a\nb\nc\n", "a\nb\nc\n", links)
    with pytest.raises(ValueError, match=f"has 3 lines, .* has {expected}: line n of the links"):
        list(read_gold_pairs(files, path))

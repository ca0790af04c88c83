"""Pairs with gold links and tags from files, and what is wrong with files."""

from dataclasses import replace
from pathlib import Path

import pytest

from relakit.analysis import (
    AnalysisPair,
    GoldAlignment,
    PairFiles,
    generated_gold_pair,
    read_analysis_pairs,
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
    assert list(read_analysis_pairs(files, gold=links)) == without_tags
    assert list(read_analysis_pairs(files, gold=links, tags=tags)) == expected


def test_one_based_reversed_and_tokenized(tmp_path: Path) -> None:
    files, links = write(tmp_path, "Mr. X .\n", "Herr X .\n", "1-1 2p2 3-3\n")
    (pair,) = read_analysis_pairs(files, gold=links, first=1, tokenized=True)
    assert pair.source_words == ((0, 3), (4, 5), (6, 7))
    assert pair.gold == GoldAlignment(frozenset({(0, 0), (2, 2)}), frozenset({(1, 1)}))
    files, links = write(tmp_path, "A b\n", "c\n", "0-1\n")
    (pair,) = read_analysis_pairs(files, gold=links, reverse=True)
    assert pair.gold.sure == {(1, 0)}


def test_links_out_of_range_name_the_line(tmp_path: Path) -> None:
    files, links = write(tmp_path, "A b\nA b\n", "c\nc\n", "0-0\n0-0 1?1\n")
    with pytest.raises(ValueError, match=r"word 1 and target word 1 .* target has 1 word;") as e:
        list(read_analysis_pairs(files, gold=links))
    assert str(e.value).startswith(f"{links}, line 2: ")
    with pytest.raises(ValueError, match="source has 0 words"):
        AnalysisPair("", "c", (), ((0, 1),), GoldAlignment(frozenset({(0, 0)})))


@pytest.mark.parametrize(("links", "expected"), [("0-0\n", "1"), ("0-0\n\n\n\n", "4"), ("", "0")])
def test_numbers_of_lines(links: str, expected: str, tmp_path: Path) -> None:
    files, path = write(tmp_path, "a\nb\nc\n", "a\nb\nc\n", links)
    with pytest.raises(ValueError, match=f"has 3 lines, .* has {expected}: line n of the links"):
        list(read_analysis_pairs(files, gold=path))


def write_file(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_naacl_needs_no_line_for_every_pair(tmp_path: Path) -> None:
    files = ParallelFiles(
        write_file(tmp_path, "s", "a\nb\nc\n"), write_file(tmp_path, "t", "A\nB\nC\n")
    )
    links = write_file(tmp_path, "l.naacl", "2 1 1 S\n")
    found = [pair.gold for pair in read_analysis_pairs(files, gold=links)]
    assert found == [GoldAlignment(frozenset(links)) for links in (set(), {(0, 0)}, set())]
    links = write_file(tmp_path, "l.naacl", "5 1 1 S\n")
    with pytest.raises(ValueError, match=r"s has 3 lines, .*l\.naacl has links of sentence 5"):
        list(read_analysis_pairs(files, gold=links))
    links = write_file(tmp_path, "l.naacl", "3 2 1 S\n")
    with pytest.raises(ValueError, match=r"l\.naacl, sentence 3: .* the source has 1 word;"):
        list(read_analysis_pairs(files, gold=links))


def test_tags_of_target_words(tmp_path: Path) -> None:
    files = ParallelFiles(
        write_file(tmp_path, "s", "a b\nc\n"), write_file(tmp_path, "t", "A.\nB c\n")
    )
    tags = write_file(tmp_path, "tags", "NOUN PUNCT\nNOUN  VERB\n")
    found = list(read_analysis_pairs(files, tags=tags))
    assert [pair.target_tags for pair in found] == [("NOUN", "PUNCT"), ("NOUN", "VERB")]
    assert found[0].gold is None
    tags = write_file(tmp_path, "tags", "NOUN PUNCT\nNOUN\n")
    with pytest.raises(ValueError, match=r"tags, line 2: it has 1 tag, the target has 2 words"):
        list(read_analysis_pairs(files, tags=tags))
    tags = write_file(tmp_path, "tags", "NOUN PUNCT\n")
    with pytest.raises(ValueError, match=r"s has 2 lines, .*tags has 1: line n of the tags"):
        list(read_analysis_pairs(files, tags=tags))


class TestPairFiles:
    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Path]:
        write(tmp_path, "A b\n\nC\n", "c\nd\ne\n", "0-0\n\n0?0\n")
        return {name: tmp_path / name for name in ("source", "target")}

    def test_pairs_can_be_read_again(self, options: dict[str, Path], tmp_path: Path) -> None:
        pairs = PairFiles(**options, gold=tmp_path / "links", gold_first=0)
        assert len(pairs) == 3
        assert pairs.empty_sides == 1
        files = ParallelFiles(options["source"], options["target"])
        expected = list(read_analysis_pairs(files, gold=tmp_path / "links"))
        assert list(pairs) == expected
        assert list(pairs) == expected
        limited = PairFiles(**options, limit=1)
        assert (len(limited), limited.empty_sides) == (1, 0)
        assert pairs.description == {
            "source": str(options["source"]),
            "target": str(options["target"]),
            "gold": f"{tmp_path / 'links'} (auto)",
            "words": "between spaces and punctuation",
        }

    def test_a_tagger_runs_once(
        self, options: dict[str, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tagged = []

        def tag_words(words: list[str], pipeline: str) -> tuple[str, ...]:
            tagged.append((words, pipeline))
            return ("X",) * len(words)

        monkeypatch.setattr("relakit.analysis.pairs.tag_words", tag_words)
        pairs = PairFiles(**options, tagger="some", tokenized=True)
        assert [pair.target_tags for pair in [*pairs, *pairs]] == [("X",)] * 6
        assert tagged == [(["c"], "some"), (["d"], "some"), (["e"], "some")]
        assert pairs.description["tags"] == "by spaCy's some"

    def test_mistakes_are_found_at_once(self, options: dict[str, Path], tmp_path: Path) -> None:
        links = write_file(tmp_path, "links", "0-0\n\n")
        with pytest.raises(ValueError, match=r"has 3 lines, .*links has 2"):
            PairFiles(**options, gold=links)
        links.write_text("0?0\n\n\n")
        with pytest.raises(ValueError, match="links has no sure link in 3 pairs"):
            PairFiles(**options, gold=links)
        with pytest.raises(ValueError, match="tags and tagger exclude each other"):
            PairFiles(**options, tags=links, tagger="some")


def test_reversed() -> None:
    pair = replace(
        AnalysisPair.from_texts("two words", "ein , zwei"),
        gold=GoldAlignment(frozenset({(0, 2)}), frozenset({(1, 0)})),
        target_tags=("NUM", "PUNCT", "NUM"),
    )
    other = pair.reversed()
    assert (other.source, other.target) == ("ein , zwei", "two words")
    assert (other.source_words, other.target_words) == (pair.target_words, pair.source_words)
    assert other.gold == GoldAlignment(frozenset({(2, 0)}), frozenset({(0, 1)}))
    assert other.target_tags is None
    assert other.reversed() == replace(pair, target_tags=None)

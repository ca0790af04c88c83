"""What a word is."""

from pathlib import Path

import pytest

from relakit.align.pair_text import pair_of_texts, read_pairs_with_gold
from relakit.analysis.link_file import LinkFile
from relakit.analysis.pairs import AnalysisPair
from relakit.data.parallel_files import ParallelFiles


def words(pair: AnalysisPair) -> list[str]:
    return [pair.source[start:end] for start, end in pair.source_words]


def test_rules() -> None:
    raw = pair_of_texts("He left , (said) she.", "x")
    assert (raw.source, words(raw)) == (
        "He left , (said) she.",
        ["He", "left", ",", "(said)", "she."],
    )
    apart = pair_of_texts("He (said) she.", "x", words="punctuation")
    assert words(apart) == ["He", "(", "said", ")", "she", "."]
    joined = pair_of_texts("He left , said she .", "x", words="tokenized")
    assert joined.source == "He left, said she."
    assert words(joined) == ["He", "left", ",", "said", "she", "."]


def test_gold_of_each_pair(tmp_path: Path) -> None:
    for name, text in (("s", "a b\n\nc\n"), ("t", "x\n\ny z\n"), ("g", "1-0\n\n0-1\n")):
        (tmp_path / name).write_text(text)
    files = ParallelFiles(tmp_path / "s", tmp_path / "t")
    gold = LinkFile(path=tmp_path / "g", format="pharaoh")
    found = list(read_pairs_with_gold(files, gold))
    assert [sorted(pair.gold.sure) for pair in found] == [[(1, 0)], [], [(0, 1)]]
    assert all(pair.gold is None for pair in read_pairs_with_gold(files, None))
    (tmp_path / "g").write_text("1-0\n\n")
    with pytest.raises(ValueError, match=r"g has no links for .*s, line 3: it must have a line"):
        list(read_pairs_with_gold(files, gold))
    (tmp_path / "g").write_text("1-0\n\n\n\n")
    with pytest.raises(ValueError, match=r"s has fewer pairs than .*g has lines of links"):
        list(read_pairs_with_gold(files, gold))
    (tmp_path / "g").write_text("1-0\n\n0-2\n")
    with pytest.raises(ValueError, match=r"g, line 3: the link of source word 0 and target word 2"):
        list(read_pairs_with_gold(files, gold))


def test_naacl_gold_needs_no_line_for_every_pair(tmp_path: Path) -> None:
    for name, text in (("s", "a b\n\nc\n"), ("t", "x\n\ny z\n"), ("g", "1 2 1 S\n")):
        (tmp_path / name).write_text(text)
    files = ParallelFiles(tmp_path / "s", tmp_path / "t")
    gold = LinkFile(path=tmp_path / "g", format="naacl")
    found = list(read_pairs_with_gold(files, gold))
    assert [sorted(pair.gold.sure) for pair in found] == [[(1, 0)], [], []]
    (tmp_path / "g").write_text("1 2 1 S\n3 1 3 S\n")
    with pytest.raises(ValueError, match=r"g, sentence 3: the link of source word 0 and target"):
        list(read_pairs_with_gold(files, gold))
    (tmp_path / "g").write_text("1 2 1 S\n5 1 1 S\n")
    with pytest.raises(ValueError, match=r"s has 3 lines, .*g has links of sentence 5 \(from 1\)"):
        list(read_pairs_with_gold(files, gold))

"""Files of links against gold ones."""

from pathlib import Path

import pytest

from relakit.analysis.alignment_bootstrap import BootstrapSettings
from relakit.analysis.gold import GoldAlignment
from relakit.analysis.link_file import LinkFile
from relakit.analysis.link_scores import score_link_files, score_links


def test_by_hand(tmp_path: Path) -> None:
    (tmp_path / "gold.talp").write_text("1-1 2p2\n1-2\n\n")
    (tmp_path / "found").write_text("0-0 1-1 1-0\n\n0-0\n")
    scores = score_link_files(
        LinkFile(path=tmp_path / "gold.talp"), LinkFile(path=tmp_path / "found", format="pharaoh")
    )
    # 4 links found, 2 sure; one found is sure, two are possible.
    assert scores.pairs == 3
    assert scores.aer.value == pytest.approx(1 - 3 / 6)
    assert scores.precision.value == pytest.approx(2 / 4)
    assert scores.recall.value == pytest.approx(1 / 2)
    assert scores.f1.value == pytest.approx(1 / 2)
    for estimate in (scores.aer, scores.precision, scores.recall, scores.f1):
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert scores.aer.low < scores.aer.high


def test_reversed_and_from_one(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-1\n")
    (tmp_path / "found").write_text("2-1\n")
    gold = LinkFile(path=tmp_path / "gold", format="pharaoh")
    found = LinkFile(path=tmp_path / "found", format="pharaoh", first=1, reverse=True)
    assert score_link_files(gold, found).aer.value == 0.0


def test_naacl_gold_needs_no_line_for_every_pair(tmp_path: Path) -> None:
    (tmp_path / "gold.naacl").write_text("1 1 1 S\n")
    (tmp_path / "found").write_text("0-0\n0-0\n\n")
    gold = LinkFile(path=tmp_path / "gold.naacl")
    found = LinkFile(path=tmp_path / "found", format="pharaoh")
    scores = score_link_files(gold, found)
    assert (scores.pairs, scores.counts.found, scores.counts.found_sure) == (3, 2, 1)
    (tmp_path / "gold.naacl").write_text("4 1 1 S\n")
    with pytest.raises(
        ValueError, match=r"found has 3 lines, .*gold\.naacl has links of sentence 4"
    ):
        score_link_files(gold, found)


def test_seeds_and_samples() -> None:
    pairs = [(GoldAlignment(frozenset({(n, n)})), frozenset({(n, n % 3)})) for n in range(9)]
    one, again, other = (
        score_links(pairs, BootstrapSettings(samples=50, seed=seed)) for seed in (1, 1, 2)
    )
    assert one == again != other
    assert one.aer.value == other.aer.value


def test_problems(tmp_path: Path) -> None:
    for name, text in (
        ("two", "0-0\n1-1\n"),
        ("one", "0-0\n"),
        ("none", "\n"),
        ("bad", "0-0\nx\n"),
    ):
        (tmp_path / name).write_text(text)

    def score(gold: str, found: str) -> None:
        both = (LinkFile(path=tmp_path / name, format="pharaoh") for name in (gold, found))
        score_link_files(*both)

    with pytest.raises(ValueError, match=r"two has the links of 2 pairs, .*one of 1: line n"):
        score("two", "one")
    with pytest.raises(ValueError, match="none has no sure link in 1 pairs"):
        score("none", "one")
    with pytest.raises(ValueError, match="bad, line 2: 'x' is not a link"):
        score("two", "bad")


def test_nothing_found() -> None:
    scores = score_links([(GoldAlignment(frozenset({(0, 0)})), frozenset())])
    assert scores.aer.value == 1.0
    assert scores.recall.value == 0.0
    assert scores.precision.value != scores.precision.value  # NaN: nothing was found
    assert (scores.f1.value, scores.f1.low, scores.f1.high) == (0.0, 0.0, 0.0)

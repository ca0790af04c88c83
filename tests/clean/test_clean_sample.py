"""Pairs that are taken for clean, and the noise that is planted in them."""

import gzip
from pathlib import Path

import pytest
from pair_texts import write_pairs
from score_samples import score_row, write_table

from relakit.clean import clean_sample
from relakit.clean.clean_sample import (
    EITHER_SIDE,
    FEWEST_PAIRS,
    plant,
    sample_of_clean,
    sample_of_corpus,
    write_planted,
)
from relakit.clean.score_table import ScoreTable
from relakit.data.generated import generate_pairs
from relakit.data.noise_draw import CLEAN, NOISE_KINDS
from relakit.data.parallel_files import NumberedPair, ParallelFiles, read_pairs

TEXTS = list({(p.source_text, p.target_text): 0 for p in generate_pairs(700, split="test")})
NUMBERED = [NumberedPair(number, *texts) for number, texts in enumerate(TEXTS, start=1)]


def corpus(
    folder: Path, pairs: list[tuple[str, str]], **cells: object
) -> tuple[ScoreTable, ParallelFiles]:
    rows = [score_row(n, *pair, **cells) for n, pair in enumerate(pairs, start=1)]
    return ScoreTable(write_table(folder / "scores.tsv", rows)), write_pairs(folder, pairs)


def test_they_are_spread_over_the_corpus(tmp_path: Path) -> None:
    table, files = corpus(tmp_path, TEXTS)
    found, candidates = sample_of_corpus(table, files, 300, seed=1)
    lines = [pair.number for pair in found]
    assert len(lines) == 300
    assert candidates == len(TEXTS)
    assert lines == sorted(set(lines))
    assert all(100 < sum(half) < 200 for half in ([n <= 350 for n in lines],))
    assert [pair.texts for pair in found] == [TEXTS[line - 1] for line in lines]
    assert sample_of_corpus(table, files, 300, seed=1)[0] == found
    assert sample_of_corpus(table, files, 300, seed=2)[0] != found


def test_a_small_pool_holds_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean_sample, "POOL", 250)
    table, files = corpus(tmp_path, TEXTS)
    found, _ = sample_of_corpus(table, files, 1000, seed=1)
    assert 200 <= len(found) <= 250


def test_some_pairs_cannot_be_clean(tmp_path: Path) -> None:
    bad = [
        ("", "Ein Hund."), ("one two", "eins zwei drei"), ("one two three four", "eins " * 20),
        ("a\tb c d e", "eins zwei drei vier fünf"), TEXTS[0],
    ]  # fmt: skip
    table, files = corpus(tmp_path, [*TEXTS, *bad])
    found, _ = sample_of_corpus(table, files, 10_000, seed=1)
    texts = [pair.texts for pair in found]
    assert not set(bad[:-1]) & set(texts)
    assert texts.count(TEXTS[0]) == 1, "not in both parts"


def test_in_a_wrong_language(tmp_path: Path) -> None:
    table, files = corpus(tmp_path, TEXTS, source_language=0.5, target_language=-0.1)
    with pytest.raises(ValueError, match=f"0 pairs of {len(TEXTS)} could be clean"):
        sample_of_corpus(table, files, 1000, seed=1)


def test_pairs_that_are_known_to_be_clean(tmp_path: Path) -> None:
    files = write_pairs(tmp_path, TEXTS)
    found, candidates = sample_of_clean(files, 250, seed=1)
    assert (len(found), candidates) == (
        250,
        sum(min(map(len, map(str.split, t))) >= 3 for t in TEXTS),
    )
    files = write_pairs(tmp_path, TEXTS[:50])
    with pytest.raises(ValueError, match=f"calibrating needs at least {FEWEST_PAIRS}"):
        sample_of_clean(files, 250, seed=1)


def test_repetitions_do_not_count(tmp_path: Path) -> None:
    """Neither as too few, nor instead of others."""
    few = TEXTS[:150] * 3
    table, files = corpus(tmp_path, few)
    with pytest.raises(ValueError, match=r": 149 pairs of 450 could be clean, repetitions"):
        sample_of_corpus(table, files, 1000, seed=1)
    with pytest.raises(ValueError, match=r"it has \d+ pairs of .* repetitions left out"):
        sample_of_clean(files, 1000, seed=1)
    table, files = corpus(tmp_path, [*TEXTS[:300], *few])
    for found, _ in (
        sample_of_corpus(table, files, 250, seed=1),
        sample_of_clean(files, 250, seed=1),
    ):
        assert len({pair.texts for pair in found}) == len(found) == 250


def test_very_long_pairs_are_left_out(tmp_path: Path) -> None:
    """What a line of a corpus may hold is too much for a table of pairs with noise."""
    size = clean_sample.MOST_BYTES // len("wörter ".encode())
    longest, too_long = ("wörter " * size, "wörter " * (size + 1))
    pairs = [*TEXTS[:250], (longest, longest), (too_long, too_long), (too_long, longest)]
    table, files = corpus(tmp_path, pairs)
    for found, _ in (
        sample_of_corpus(table, files, 1000, seed=1),
        sample_of_clean(files, 1000, seed=1),
    ):
        texts = [pair.texts for pair in found]
        assert (longest, longest) in texts
        assert not {(too_long, too_long), (too_long, longest)} & {*texts}
        planted = list(plant(found, seed=1))
        files_of_noise = write_planted(planted, tmp_path / "planted.tsv.gz")
        assert len(list(read_pairs(files_of_noise))) == len(planted)


def test_every_pair_is_clean_once_and_most_are_noisy_once() -> None:
    planted = list(plant(NUMBERED, seed=1))
    clean = [pair for pair in planted if pair.label == CLEAN]
    assert sorted(pair.origin for pair in clean) == list(range(len(NUMBERED)))
    noisy = [pair for pair in planted if pair.label != CLEAN]
    assert 0.8 < len(noisy) / len(NUMBERED) < 0.97
    assert {pair.label for pair in noisy} == set(NOISE_KINDS)
    for pair in planted:
        original = NUMBERED[pair.origin]
        is_same = pair.source == original.source, pair.target == original.target
        if pair.label == CLEAN:
            assert is_same == (True, True)
        elif pair.label in EITHER_SIDE:
            assert sum(is_same) == 1
        else:
            assert is_same == (True, False)


def test_copies_and_wrong_languages_are_on_either_side() -> None:
    planted = list(plant(NUMBERED, seed=1))
    sources, targets = ({texts[side] for texts in TEXTS} for side in (0, 1))
    for part in ("fit", "held out"):
        some = [pair for pair in planted if pair.part == part]
        copied = [pair for pair in some if pair.label == "copied"]
        assert all(pair.source == pair.target for pair in copied)
        foreign = [pair for pair in some if pair.label == "language"]
        for kind in (copied, foreign):
            wrong = [pair.source in targets for pair in kind], [p.target in sources for p in kind]
            assert [sum(side) for side in wrong] == pytest.approx([len(kind) / 2] * 2, abs=2)
            assert all(sum(sides) == 1 for sides in zip(*wrong, strict=True))


def test_no_words_go_from_one_part_to_the_other() -> None:
    planted = list(plant(NUMBERED, seed=1))
    targets = {
        part: {pair.target for pair in planted if pair.part == part and pair.label == CLEAN}
        for part in ("fit", "held out")
    }
    shuffled = [pair for pair in planted if pair.label == "shuffled"]
    assert all(pair.target in targets[pair.part] for pair in shuffled)
    only = targets["held out"] - targets["fit"]
    assert any(pair.target in only for pair in shuffled), "held-out pairs have noise of their own"


def test_as_a_table(tmp_path: Path) -> None:
    planted = list(plant(NUMBERED[:60], seed=1))
    files = write_planted(planted, tmp_path / "planted.tsv.gz")
    assert list(read_pairs(files)) == [(pair.source, pair.target) for pair in planted]
    names = gzip.decompress((tmp_path / "planted.tsv.gz").read_bytes()).decode().split("\n")[0]
    assert names == "source\ttarget\tlabel\tpart\torigin"

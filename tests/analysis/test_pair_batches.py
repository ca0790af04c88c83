"""Which pairs are computed together, and which source a target is given instead of its own."""

from itertools import pairwise

import numpy as np
import pytest

from relakit.analysis import AnalysisPair
from relakit.analysis.pair_batches import (
    WINDOW_TOKENS,
    EncodedPairs,
    padded_size,
    plan_pair_batches,
    read_windows,
    wrong_sources,
)
from relakit.data.tokenizer import Tokenizer


def test_padding_depends_on_the_sentence_alone_and_is_never_absent() -> None:
    assert [padded_size(size) for size in (1, 7, 8, 15, 16, 23, 24)] == [16] * 4 + [24] * 2 + [32]


def test_plan() -> None:
    sizes = [(3, 3), (19, 19), (4, 3), (3, 18), (2, 2)]
    assert plan_pair_batches(sizes, 1000, 1000) == [[1], [3], [0, 2, 4]]
    assert plan_pair_batches(sizes, 1, 1000) == [[1], [3], [0], [2], [4]]
    assert plan_pair_batches([], 10, 10) == []
    random = np.random.default_rng(0)
    many = [(int(s), int(t)) for s, t in random.integers(1, 40, (500, 2))]
    batches = plan_pair_batches(many, 100, 2000)
    assert sorted(i for batch in batches for i in batch) == list(range(500))

    def shape(index: int) -> tuple[int, int]:
        source, target = many[index]
        return padded_size(source), padded_size(target)

    def fits(batch: list[int]) -> bool:
        longest = max(max(shape(i)) for i in batch)
        return len(batch) == 1 or (len(batch) * longest <= 100 and len(batch) * longest**2 <= 2000)

    assert all(fits(batch) for batch in batches)
    assert all(len({shape(i) for i in batch}) == 1 for batch in batches)
    # And none could have taken in the pair that comes next, if it has the same shape.
    assert not any(
        shape(batch[0]) == shape(after[0]) and fits([*batch, after[0]])
        for batch, after in pairwise(batches)
    )


def test_windows_end_by_pairs_or_by_tokens() -> None:
    pairs = [([5], [6])] * 7
    assert [len(window) for window in read_windows(iter(pairs), 3)] == [3, 3, 1]
    assert list(read_windows([], 3)) == []
    long = ([5] * (WINDOW_TOKENS // 2), [6])
    assert [len(window) for window in read_windows([long] * 5, 100)] == [2, 2, 1]


@pytest.mark.parametrize("count", [2, 3, 10, 1000])
def test_no_target_keeps_its_source(count: int) -> None:
    for seed in range(5):
        others = wrong_sources(count, (seed, 0))
        assert sorted(others) == list(range(count))
        assert all(other != index for index, other in enumerate(others))
        assert others == wrong_sources(count, (seed, 0))
    if count > 3:
        assert wrong_sources(count, (1, 0)) != wrong_sources(count, (1, 1))


def test_one_pair_has_no_other() -> None:
    with pytest.raises(ValueError, match="at least 2 pairs are needed to exchange sources, got 1"):
        wrong_sources(1, (0, 0))


def test_pairs_are_read_one_by_one_and_taken_once(tokenizer: Tokenizer) -> None:
    pairs = [AnalysisPair.from_texts(*texts) for texts in [("a b.", "c"), ("", "d e")]]
    encoded = EncodedPairs(tokenizer)
    tokens = encoded.read(iter(pairs))
    assert next(tokens) == (tokenizer.encode("a b.").ids, tokenizer.encode("c").ids)
    with pytest.raises(KeyError):
        encoded.take(1)  # not read yet
    assert next(tokens)[1] == tokenizer.encode("d e").ids
    second, first = encoded.take(1), encoded.take(0)
    assert (first.pair, second.pair) == tuple(pairs)
    assert list(first.source_spans) == list(tokenizer.encode("a b.").spans)
    assert set(first.source_words.tolist()) == {0, 1, 2}
    assert second.source_words.size == 0
    with pytest.raises(KeyError):
        encoded.take(0)

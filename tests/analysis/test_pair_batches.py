"""Which pairs are computed together, and which source a target is given instead of its own."""

from itertools import pairwise

import numpy as np
import pytest

from relakit.analysis.pair_batches import (
    WINDOW_TOKENS,
    plan_pair_batches,
    read_windows,
    wrong_sources,
)


def test_plan() -> None:
    sizes = [(3, 3), (9, 9), (4, 3), (3, 4), (2, 2)]
    assert plan_pair_batches(sizes, 1000, 1000) == [[1, 3, 2, 0, 4]]
    assert plan_pair_batches(sizes, 1, 1000) == [[1], [3], [2], [0], [4]]
    assert plan_pair_batches([], 10, 10) == []
    random = np.random.default_rng(0)
    many = [(int(s), int(t)) for s, t in random.integers(1, 40, (500, 2))]
    batches = plan_pair_batches(many, 100, 2000)
    assert sorted(i for batch in batches for i in batch) == list(range(500))

    def fits(batch: list[int]) -> bool:
        longest = max(max(many[i]) for i in batch)
        return len(batch) * longest <= 100 and len(batch) * longest**2 <= 2000

    assert all(fits(batch) for batch in batches)
    # And none could have taken in the pair that comes next.
    assert not any(fits([*batch, after[0]]) for batch, after in pairwise(batches))


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

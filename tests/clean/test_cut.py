"""Which pairs a cut keeps."""

import numpy as np
import pytest

from relakit.clean.cut import cut_at, keep_best

NAN = np.nan


@pytest.mark.parametrize(
    ("badness", "share", "kept", "limit"),
    [
        ([3, 1, 2, 4], 0.5, [0, 1, 1, 0], 2),
        ([2, 2, 2, 2, 2], 0.4, [1, 1, 0, 0, 0], 2),  # of equal ones the first
        ([2, 1, 2, NAN, 2], 0.5, [1, 1, 0, 0, 0], 2),  # of those that can be kept
        ([NAN, 5, 4], 1, [0, 1, 1], 5),
        ([-1, -3, -2], 1 / 3, [0, 1, 0], -3),
    ],
)
def test_the_best_share(badness: list, share: float, kept: list, limit: float) -> None:  # type: ignore[type-arg]
    cut = keep_best(np.array(badness, dtype=float), share)
    assert cut.kept.tolist() == [bool(one) for one in kept]
    assert cut.limit == limit


def test_it_is_exactly_that_many() -> None:
    badness = np.random.default_rng(1).integers(0, 5, 1000).astype(float)
    badness[::7] = NAN
    for share in (0.1, 0.333, 0.8, 0.999):
        cut = keep_best(badness, share)
        assert cut.kept.sum() == round(share * cut.rankable)
        assert badness[cut.kept].max() <= np.nanmin(badness[~cut.kept & ~np.isnan(badness)])


def test_a_limit_is_still_kept() -> None:
    assert cut_at(np.array([1.0, 2.0, 2.1, NAN]), 2.0).kept.tolist() == [True, True, False, False]


@pytest.mark.parametrize("share", [0.0, -1.0, 1.1])
def test_no_share(share: float) -> None:
    with pytest.raises(ValueError, match="--keep must be above 0 and at most 1"):
        keep_best(np.array([1.0]), share)


def test_nothing_is_left() -> None:
    with pytest.raises(ValueError, match=r"--keep 0\.1 of 3 pairs that can be kept leaves none"):
        keep_best(np.array([1.0, 2.0, 3.0]), 0.1)

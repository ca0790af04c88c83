"""The learning rate."""

import pytest

from relakit.train.schedule import learning_rate


@pytest.mark.parametrize(
    ("update", "expected"),
    # The formula of Vaswani et al. by hand: d = 512, warm-up 4,000.
    [(1, 1.7469e-7), (4000, 6.9877e-4), (16000, 3.4939e-4)],
)
def test_the_papers_schedule(update: int, expected: float) -> None:
    assert learning_rate(update, dim=512, warmup=4000, factor=1.0) == pytest.approx(
        expected, rel=1e-4
    )


def test_peaks_at_the_end_of_the_warmup() -> None:
    rates = [learning_rate(n, dim=64, warmup=50, factor=2.0) for n in range(1, 200)]
    assert max(range(199), key=rates.__getitem__) == 49


def test_there_is_no_update_zero() -> None:
    with pytest.raises(ValueError, match="count from 1, got 0"):
        learning_rate(0, dim=512, warmup=4000, factor=1.0)


def test_a_cooldown_ends_near_zero_and_changes_nothing_before() -> None:
    hot = [learning_rate(n, dim=64, warmup=50, factor=2.0) for n in range(1, 201)]
    cooled = [
        learning_rate(n, dim=64, warmup=50, factor=2.0, cooldown=0.25, updates=200)
        for n in range(1, 201)
    ]
    assert cooled[:151] == hot[:151]
    # Linear over the last fifty: update 176 has half of its rate, the last a fiftieth.
    assert cooled[175] == pytest.approx(hot[175] / 2)
    assert cooled[199] == pytest.approx(hot[199] / 50)


def test_a_cooldown_needs_an_end() -> None:
    with pytest.raises(ValueError, match="needs the number of updates"):
        learning_rate(1, dim=64, warmup=50, factor=2.0, cooldown=0.25)

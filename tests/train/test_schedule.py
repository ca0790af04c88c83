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

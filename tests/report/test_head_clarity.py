"""How clearly heads point: known pictures, and which of them is the clearest."""

import numpy as np
import pytest

from relakit.report.head_clarity import clearest_head, head_clarity, mean_clarity

SIZE = 6


def picture(name: str) -> np.ndarray:
    weights = np.zeros((SIZE, SIZE), dtype=np.float32)
    if name == "diagonal":
        np.fill_diagonal(weights, 7)
    elif name == "half diagonal":
        weights[[0, 1, 2], [0, 1, 2]] = 7
    elif name == "sink":
        weights[:, 0] = 3
    elif name == "even":
        weights[:] = 0.1
    elif name == "negative diagonal":
        np.fill_diagonal(weights, -2)
    elif name == "blurred diagonal":
        weights[:] = 0.2
        np.fill_diagonal(weights, 1)
    return weights


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("diagonal", 1, 1),
        ("negative diagonal", 1, 1),
        # Three of six rows, log 3 of log 6.
        ("half diagonal", 0.5 * np.log(3) / np.log(6), 0.5 * np.log(3) / np.log(6)),
        ("blurred diagonal", 0.05, 0.5),
        ("sink", 0, 0),
        ("even", 0, 0),
        ("nothing", 0, 0),
    ],
)
def test_known_pictures(name: str, low: float, high: float) -> None:
    [[clarity]] = head_clarity(picture(name)[None, None])
    assert low - 1e-9 <= clarity <= high + 1e-9


def test_the_clearest_head_is_neither_a_sink_nor_nearly_always_null() -> None:
    heads = ["sink", "half diagonal", "nothing", "blurred diagonal", "diagonal", "even"]
    weights = np.stack([picture(name) for name in heads]).reshape(2, 3, SIZE, SIZE)
    assert clearest_head(head_clarity(weights).tolist()) == (1, 1)


def test_sentences_of_one_token_have_no_say() -> None:
    weights = picture("diagonal")[None, None]
    one_row = head_clarity(weights[:, :, :1])
    assert np.isnan(one_row).all()
    assert mean_clarity([one_row, head_clarity(weights)]) == [[pytest.approx(1)]]
    assert mean_clarity([one_row]) is None
    assert mean_clarity([]) is None

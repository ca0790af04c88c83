"""Which words nothing supports: phrases, found among words of which none is sure by itself."""

import math
from itertools import product

import numpy as np
import pytest

from relakit.clean.unsupported import (
    BEGINS,
    EXPECTED_LOSS,
    EXPECTED_LOSS_IF_LINKED,
    GOES_ON,
    NAT,
    unsupported_words,
)


def log_odds(losses: list[float], is_linked: list[bool], found: tuple[bool, ...]) -> float:
    """Of a sequence of supported and unsupported words, as the module says it is."""
    total, before = 0.0, False
    for loss, linked, now in zip(losses, is_linked, found, strict=True):
        chance = GOES_ON if before else BEGINS
        total += math.log(chance if now else 1 - chance)
        total += NAT * (loss - (EXPECTED_LOSS_IF_LINKED if linked else EXPECTED_LOSS)) * now
        before = now
    chance = GOES_ON if before else BEGINS
    return total + math.log(1 - chance)


@pytest.mark.parametrize("seed", range(30))
def test_no_other_sequence_is_likelier(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = 1 + seed % 8
    losses = draw.uniform(0, 14, count).tolist()
    is_linked = (draw.random(count) < 0.5).tolist()
    found = unsupported_words(losses, is_linked)
    sequences = product((False, True), repeat=count)
    best = max(sequences, key=lambda sequence: log_odds(losses, is_linked, sequence))
    assert found == [word for word, is_in in enumerate(best) if is_in]


def test_a_phrase_is_found_with_the_words_between() -> None:
    losses = [1.0, 1.0, 9.0, 3.0, 9.0, 9.0, 1.0, 1.0]
    is_linked = [True, True, False, True, False, False, True, True]
    assert unsupported_words(losses, is_linked) == [2, 3, 4, 5]
    assert unsupported_words(losses, [True] * 8) == [], "all are linked, and not so unlikely"
    assert unsupported_words([1.0] * 8, [False] * 8) == [], "the model expected all of them"


def test_a_single_word_must_be_very_unlikely() -> None:
    is_linked = [True, True, False, True, True]
    assert unsupported_words([1.0, 1.0, 9.0, 1.0, 1.0], is_linked) == []
    assert unsupported_words([1.0, 1.0, 14.0, 1.0, 1.0], is_linked) == [2]
    for place in range(3):
        losses, alone = [0.0] * 3, [True] * 3
        losses[place], alone[place] = 10.0, False
        assert unsupported_words(losses, alone) == [], "wherever it stands"


def test_a_text_without_words() -> None:
    assert unsupported_words([], []) == []

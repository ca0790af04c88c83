"""Which words nothing supports: phrases, found among words of which none is sure by itself."""

import math
from itertools import product

import numpy as np
import pytest

from relakit.clean.unsupported import BEGINS, GOES_ON, NAT, USUAL_MARGIN, unsupported_words


def log_odds(margins: list[float], links: list[list[bool]], found: tuple[bool, ...]) -> float:
    """Of a sequence of supported and unsupported words, as the module says it is."""
    total, before = 0.0, False
    for margin, answers, now in zip(margins, links, found, strict=True):
        chance = GOES_ON if before else BEGINS
        total += math.log(chance if now else 1 - chance)
        total += NAT * (margin - USUAL_MARGIN[len(answers)][sum(answers)]) * now
        before = now
    chance = GOES_ON if before else BEGINS
    return total + math.log(1 - chance)


NONE, ONE = [False], [True]
"""Answers of a single model."""


@pytest.mark.parametrize("seed", range(40))
def test_no_other_sequence_is_likelier(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = 1 + seed % 8
    margins = draw.uniform(0, 20, count).tolist()
    links = [(draw.random(1 + draw.integers(2)) < 0.5).tolist() for _ in margins]
    found = unsupported_words(margins, links)
    sequences = product((False, True), repeat=count)
    best = max(sequences, key=lambda sequence: log_odds(margins, links, sequence))
    assert found == [word for word, is_in in enumerate(best) if is_in]


def test_a_phrase_is_found_with_the_words_between() -> None:
    margins = [0.0, 0.0, 11.0, 3.0, 11.0, 11.0, 0.0, 0.0]
    links = [ONE, ONE, NONE, ONE, NONE, NONE, ONE, ONE]
    assert unsupported_words(margins, links) == [2, 3, 4, 5]
    assert unsupported_words(margins, [ONE] * 8) == [], "all are linked, and not so unlikely"
    assert unsupported_words([0.0] * 8, [NONE] * 8) == [], "the model expected all of them"


def test_a_single_word_must_be_very_unlikely() -> None:
    links = [ONE, ONE, NONE, ONE, ONE]
    assert unsupported_words([0.0, 0.0, 9.0, 0.0, 0.0], links) == []
    assert unsupported_words([0.0, 0.0, 20.0, 0.0, 0.0], links) == [2]
    for place in range(3):
        margins, alone = [0.0] * 3, [ONE] * 3
        margins[place], alone[place] = 10.0, NONE
        assert unsupported_words(margins, alone) == [], "wherever it stands"


def test_links_of_two_models_say_more_than_those_of_one() -> None:
    margins = [7.0] * 4
    assert unsupported_words(margins, [[False, False]] * 4) == [0, 1, 2, 3]
    assert unsupported_words(margins, [[True, False]] * 4) == []
    assert unsupported_words(margins, [[True, True]] * 4) == []
    assert unsupported_words([6.0] * 4, [NONE] * 4) == []
    assert unsupported_words([6.0] * 4, [[False, False]] * 4) == [0, 1, 2, 3]


def test_a_text_without_words() -> None:
    assert unsupported_words([], []) == []

"""Which words nothing supports: phrases, found among words of which none is sure by itself."""

import math
from itertools import product

import numpy as np
import pytest

from relakit.clean.unsupported import BEGINS, GOES_ON, NAT, USUAL_MARGIN, unsupported_chances


def weight(margins: list[float], links: list[list[bool]], found: tuple[bool, ...]) -> float:
    """Of a sequence of supported and unsupported words, as the module says it is."""
    total, before = 0.0, False
    for margin, answers, now in zip(margins, links, found, strict=True):
        chance = GOES_ON if before else BEGINS
        total += math.log(chance if now else 1 - chance)
        total += NAT * (margin - USUAL_MARGIN[len(answers)][sum(answers)]) * now
        before = now
    chance = GOES_ON if before else BEGINS
    return math.exp(total) * (1 - chance)


def unsupported(margins: list[float], links: list[list[bool]]) -> list[int]:
    return [w for w, chance in enumerate(unsupported_chances(margins, links)) if chance > 0.5]


NONE, ONE = [False], [True]
"""Answers of a single model."""


@pytest.mark.parametrize("seed", range(40))
def test_chances_are_those_of_all_sequences(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = 1 + seed % 8
    margins = draw.uniform(0, 20, count).tolist()
    links = [(draw.random(1 + draw.integers(2)) < 0.5).tolist() for _ in margins]
    sequences = list(product((False, True), repeat=count))
    weights = np.array([weight(margins, links, sequence) for sequence in sequences])
    expected = weights @ np.array(sequences, dtype=float) / weights.sum()
    np.testing.assert_allclose(unsupported_chances(margins, links), expected, rtol=1e-9)


def test_a_phrase_is_found_with_the_words_between() -> None:
    margins = [0.0, 0.0, 13.0, 4.0, 13.0, 13.0, 0.0, 0.0]
    links = [ONE, ONE, NONE, ONE, NONE, NONE, ONE, ONE]
    assert unsupported(margins, links) == [2, 3, 4, 5]
    assert unsupported(margins, [ONE] * 8) == [], "all are linked, and not so unlikely"
    assert unsupported([0.0] * 8, [NONE] * 8) == [], "the model expected all of them"


def test_a_single_word_must_be_very_unlikely() -> None:
    links = [ONE, ONE, NONE, ONE, ONE]
    assert unsupported([0.0, 0.0, 9.0, 0.0, 0.0], links) == []
    assert unsupported([0.0, 0.0, 25.0, 0.0, 0.0], links) == [2]
    for place in range(3):
        margins, alone = [0.0] * 3, [ONE] * 3
        margins[place], alone[place] = 10.0, NONE
        assert unsupported(margins, alone) == [], "wherever it stands"


def test_links_of_two_models_say_more_than_those_of_one() -> None:
    margins = [7.0] * 4
    assert unsupported(margins, [[False, False]] * 4) == [0, 1, 2, 3]
    assert unsupported(margins, [[True, False]] * 4) == []
    assert unsupported(margins, [[True, True]] * 4) == []
    assert unsupported([6.5] * 4, [NONE] * 4) == []
    assert unsupported([6.5] * 4, [[False, False]] * 4) == [0, 1, 2, 3]


def test_extreme_margins() -> None:
    chances = unsupported_chances([1e6, 1e300, 0.0], [NONE, [True, True], [True, True]])
    assert chances[:2] == pytest.approx([1, 1])
    assert 0 <= chances[2] < 0.5


def test_a_text_without_words() -> None:
    assert unsupported_chances([], []) == []

"""Which words nothing supports: phrases, found among words of which none is sure by itself."""

import math
from itertools import product

import numpy as np
import pytest

from relakit.clean.unsupported import BEGINS, GOES_ON, NAT, USUAL_MARGIN, unsupported_words


def log_odds(margins: list[float], links: list[int], models: int, found: tuple[bool, ...]) -> float:
    """Of a sequence of supported and unsupported words, as the module says it is."""
    total, before = 0.0, False
    for margin, linked, now in zip(margins, links, found, strict=True):
        chance = GOES_ON if before else BEGINS
        total += math.log(chance if now else 1 - chance)
        total += NAT * (margin - USUAL_MARGIN[models][linked]) * now
        before = now
    chance = GOES_ON if before else BEGINS
    return total + math.log(1 - chance)


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_no_other_sequence_is_likelier(seed: int, models: int) -> None:
    draw = np.random.default_rng(seed)
    count = 1 + seed % 8
    margins = draw.uniform(0, 20, count).tolist()
    links = draw.integers(0, models + 1, count).tolist()
    found = unsupported_words(margins, links, models)
    sequences = product((False, True), repeat=count)
    best = max(sequences, key=lambda sequence: log_odds(margins, links, models, sequence))
    assert found == [word for word, is_in in enumerate(best) if is_in]


def test_a_phrase_is_found_with_the_words_between() -> None:
    margins = [0.0, 0.0, 11.0, 3.0, 11.0, 11.0, 0.0, 0.0]
    links = [1, 1, 0, 1, 0, 0, 1, 1]
    assert unsupported_words(margins, links, 1) == [2, 3, 4, 5]
    assert unsupported_words(margins, [1] * 8, 1) == [], "all are linked, and not so unlikely"
    assert unsupported_words([0.0] * 8, [0] * 8, 1) == [], "the model expected all of them"


def test_a_single_word_must_be_very_unlikely() -> None:
    links = [1, 1, 0, 1, 1]
    assert unsupported_words([0.0, 0.0, 9.0, 0.0, 0.0], links, 1) == []
    assert unsupported_words([0.0, 0.0, 20.0, 0.0, 0.0], links, 1) == [2]
    for place in range(3):
        margins, alone = [0.0] * 3, [1] * 3
        margins[place], alone[place] = 10.0, 0
        assert unsupported_words(margins, alone, 1) == [], "wherever it stands"


def test_links_of_two_models_say_more_than_those_of_one() -> None:
    margins = [7.0] * 4
    assert unsupported_words(margins, [0] * 4, 2) == [0, 1, 2, 3]
    assert unsupported_words(margins, [2] * 4, 2) == []
    assert unsupported_words(margins, [1] * 4, 2) == []
    assert unsupported_words([6.0] * 4, [0] * 4, 1) == []
    assert unsupported_words([6.0] * 4, [0] * 4, 2) == [0, 1, 2, 3]


def test_a_text_without_words() -> None:
    assert unsupported_words([], [], 1) == []

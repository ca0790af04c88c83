"""Links from weights, against slow definitions and by hand."""

import math
from itertools import product

import numpy as np
import pytest

from relakit.analysis import NO_WORD, best_source_words, links_of


def test_each_target_word_links_to_its_largest_weight() -> None:
    weights = np.array([[0.1, 0.7, 0.2], [0.0, 0.0, 0.3], [0.5, 0.0, 0.0]])
    assert links_of(weights) == {(1, 0), (2, 1), (0, 2)}


def test_a_null_row_has_no_link() -> None:
    weights = np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    assert links_of(weights) == {(1, 1)}
    assert links_of(np.zeros((3, 4))) == frozenset()


def test_the_first_of_equal_weights_wins() -> None:
    assert links_of(np.array([[0.0, 0.5, 0.5]])) == {(1, 0)}


def test_without_source_or_target_words() -> None:
    assert links_of(np.zeros((2, 0))) == frozenset()
    assert links_of(np.zeros((0, 2))) == frozenset()


def test_the_end_of_the_sentence_counts_on_request() -> None:
    weights = np.array([[0.1, 0.3], [0.2, 0.1], [0.4, 0.0]])
    end = np.array([0.6, 0.2, 0.1])
    assert links_of(weights) == {(1, 0), (0, 1), (0, 2)}
    assert links_of(weights, end) == {(0, 1), (0, 2)}


def test_best_source_words_of_many_heads_against_loops() -> None:
    random = np.random.default_rng(1)
    weights = random.random((3, 2, 5, 4)) * (random.random((3, 2, 5, 4)) > 0.7)
    end = random.random((3, 2, 5)) * 0.8
    plain, with_end = best_source_words(weights), best_source_words(weights, end)
    assert (plain == NO_WORD).any()
    assert (with_end != plain).any()
    for place in product(range(3), range(2), range(5)):
        row = weights[place].tolist()
        expected = row.index(max(row)) if any(row) else NO_WORD
        assert plain[place] == expected
        assert with_end[place] == (expected if max(row) >= end[place] else NO_WORD)


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="computes NaN or infinity"):
        links_of(np.array([[0.5, math.nan]]))


def test_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"\[target words, source words\], got \(1, 2, 3\)"):
        links_of(np.zeros((1, 2, 3)))

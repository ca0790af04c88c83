"""From weights between tokens to links between words."""

import numpy as np
import pytest

from relakit.align.alignment import (
    Alignment,
    TokenWords,
    join_directions,
    read_alignment,
    read_layer_alignment,
    read_mutual_links,
)
from relakit.align.formats import format_line
from relakit.broken_model import BrokenModelError

# Source: words 0 and 1, the second of two tokens. Target: words 0, 1, 2, a token each.
WORDS = TokenWords(np.array([0, 1, 1]), np.array([0, 1, 2]), 2, 3)
WEIGHTS = np.array(
    [
        [0.6, 0.0, 0.0, 0.0],
        [0.5, 0.3, 0.3, 0.0],
        [0.0, 0.0, 0.0, 0.0],
        [0.0, 0.1, 0.1, 0.8],
    ]
)


def test_the_largest_sum_over_a_words_tokens_wins_and_nothing_has_no_link() -> None:
    found = read_alignment(WEIGHTS, WORDS, shift=0)
    assert found.scores == {(0, 0): 1.0, (1, 1): pytest.approx(0.6 / 1.1)}
    assert found.links == {(0, 0), (1, 1)}
    assert found.null_rate == pytest.approx(1 / 3)
    assert (found.unaligned_source, found.unaligned_target) == ([], [2])


def test_shifted_reads_one_step_later() -> None:
    found = read_alignment(WEIGHTS, WORDS, shift=1)
    assert found.links == {(1, 0), (1, 2)}
    assert found.unaligned_source == [0]
    assert found.unaligned_target == [1]


def test_the_end_competes_or_not() -> None:
    found = read_alignment(WEIGHTS, WORDS, shift=1, end="competes")
    assert found.links == {(1, 0)}
    assert read_alignment(WEIGHTS, WORDS, shift=1).scores[1, 2] == 1.0


def test_two_directions() -> None:
    forward = Alignment({(0, 0): 0.8, (1, 1): 0.4}, 2, 3, 0.25)
    backward = Alignment({(0, 0): 0.6, (2, 1): 0.5}, 3, 2, 0.5)  # its source is our target
    joined = join_directions(forward, backward, "union")
    assert joined.scores == {
        (0, 0): pytest.approx(0.7),
        (1, 1): pytest.approx(0.2),
        (1, 2): pytest.approx(0.25),
    }
    assert list(joined.scores) == sorted(joined.scores)
    assert (joined.source_count, joined.target_count, joined.null_rate) == (2, 3, 0.25)


def test_formats() -> None:
    found = Alignment({(0, 1): 0.51239, (2, 0): 1.0}, 3, 3, 1 / 3)
    words = (["a", "b", "c"], ["x", "y", "z"])
    assert format_line(found, words, "pharaoh") == "0-1 2-0"
    assert format_line(found, words, "json") == (
        '{"links": [[0, 1, 0.5124], [2, 0, 1.0]], "unaligned_source": [1], '
        '"unaligned_target": [2], "null_rate": 0.3333}'
    )
    assert format_line(found, words, "text") == "a→y c→x b→∅ ∅→z"
    nothing = Alignment({}, 0, 0)
    assert format_line(nothing, ([], []), "pharaoh") == ""
    assert format_line(nothing, ([], []), "text") == ""
    assert '"null_rate": null' in format_line(nothing, ([], []), "json")


def layer_weights(rows: list[list[float]]) -> np.ndarray:
    """With a row and a column of the ends, which must not matter."""
    return np.pad(np.array(rows), ((0, 1), (0, 1)), constant_values=99.0)


def test_each_word_is_the_others_best() -> None:
    weights = layer_weights([[3.0, 0.0, 1.0], [2.0, 0.0, 2.5], [2.0, 0.0, 0.5]])
    found = read_layer_alignment(weights, WORDS)
    # Target word 2 fits source word 0 best, which fits another one better.
    assert found.scores == {(0, 0): pytest.approx(3 / 4), (1, 1): pytest.approx(2.5 / 4.5)}
    assert (found.unaligned_source, found.unaligned_target) == ([], [2])
    assert found.null_rate == 0.0


def test_a_certain_link_needs_not_be_the_best() -> None:
    weights = layer_weights([[6.0, 0.0, 0.0], [4.1, 0.0, 0.0], [4.0, 0.0, 0.0]])
    found = read_layer_alignment(weights, WORDS)
    assert found.scores == {(0, 0): 1.0, (0, 1): 1.0}
    assert found.unaligned_source == [1]


def test_no_weight_is_no_link_though_nothing_is_better() -> None:
    found = read_layer_alignment(layer_weights([[0.0] * 3, [0.0] * 3, [0.0, 0.0, 0.1]]), WORDS)
    assert found.links == {(1, 2)}
    assert found.null_rate == pytest.approx(2 / 3)


def test_tokens_of_no_word_link_nothing() -> None:
    words = TokenWords(np.array([-1, 0]), np.array([0, -1]), 1, 2)
    found = read_layer_alignment(layer_weights([[9.0, 0.0], [9.0, 9.0]]), words)
    assert found.links == frozenset()
    assert found.unaligned_target == [0, 1], "the second word has no token at all"


@pytest.mark.parametrize(("sources", "targets"), [(0, 2), (2, 0)])
def test_a_side_without_words(sources: int, targets: int) -> None:
    words = TokenWords(np.arange(sources), np.arange(targets), sources, targets)
    found = read_layer_alignment(np.zeros((targets + 1, sources + 1)), words)
    assert found.links == frozenset()


def test_weights_that_are_no_numbers() -> None:
    weights = layer_weights([[1.0, np.nan, 0.0]] * 3)
    with pytest.raises(BrokenModelError):
        read_layer_alignment(weights, WORDS)


def test_links_that_hold_in_both_directions() -> None:
    # Target word 1 attends most to source word 1, but so does source word 0 from target word 0.
    found = read_mutual_links(WEIGHTS, WORDS, shift=0)
    assert found.sure == {(0, 0), (1, 1)}
    assert found.possible == found.sure
    # One step later target words 0 and 2 attend to source word 1, word 0 the most.
    found = read_mutual_links(WEIGHTS, WORDS, shift=1)
    assert found.sure == {(1, 0)}
    assert found.possible == {(0, 0), (1, 0), (1, 2)}
    found = read_mutual_links(WEIGHTS, WORDS, shift=1, end="competes")
    assert found.possible == {(0, 0), (1, 0)}, "word 2 attends to the end most"

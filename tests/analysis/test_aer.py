"""The alignment error rate, against slow definitions and known values."""

import math

import numpy as np
import pytest

from relakit.analysis import (
    NO_WORD,
    AlignmentScore,
    AttentionScores,
    GoldAlignment,
    alignment_error_rate,
)
from relakit.analysis.aer import LinkCounts


def test_the_error_rate_by_hand() -> None:
    # A = 4 links, S = 3: two found; P adds one more that was found.
    found = [{(0, 0), (1, 1)}, {(0, 1), (2, 2)}]
    sure = [{(0, 0), (1, 2)}, {(2, 2)}]
    possible = [{(1, 1)}, {(3, 3)}]
    score = alignment_error_rate(found, sure, possible)
    assert score == AlignmentScore(found=4, sure=3, found_sure=2, found_possible=3)
    assert score.aer == pytest.approx(1 - 5 / 7)
    assert score.precision == pytest.approx(3 / 4)
    assert score.recall == pytest.approx(2 / 3)


def test_perfect_and_empty_alignments() -> None:
    gold = [{(0, 0), (1, 1)}]
    perfect = alignment_error_rate(gold, gold)
    assert (perfect.aer, perfect.precision, perfect.recall) == (0.0, 1.0, 1.0)
    nothing = alignment_error_rate([set()], gold)
    assert (nothing.aer, nothing.recall) == (1.0, 0.0)
    assert math.isnan(nothing.precision)
    assert math.isnan(alignment_error_rate([], []).aer)
    # A possible link that was not found costs nothing, a possible one that was found neither.
    for found in ({(0, 0)}, {(0, 0), (1, 1)}):
        assert alignment_error_rate([found], [{(0, 0)}], [{(1, 1), (2, 2)}]).aer == 0.0


def test_without_possible_links_it_is_one_minus_f1() -> None:
    score = alignment_error_rate([{(0, 0), (1, 1), (2, 1)}], [{(0, 0), (1, 1), (3, 3), (4, 4)}])
    f1 = 2 * score.precision * score.recall / (score.precision + score.recall)
    assert score.aer == pytest.approx(1 - f1)


def test_the_corpus_counts_links_and_not_sentences() -> None:
    """A thousand right links in one pair outweigh a pair with one wrong link."""
    many = {(n, n) for n in range(1000)}
    score = alignment_error_rate([many, {(0, 1)}], [many, {(0, 0)}])
    assert score.aer == pytest.approx(1 - 2000 / 2002)
    apart = alignment_error_rate([many], [many]) + alignment_error_rate([{(0, 1)}], [{(0, 0)}])
    assert apart == score


def test_the_error_rate_against_arrays() -> None:
    """Random links as 0/1 matrices: products and sums instead of sets."""
    random = np.random.default_rng(2)
    a, s, p = random.random((3, 20, 6, 5)) < np.array([0.3, 0.2, 0.3])[:, None, None, None]
    p |= s

    def sets(matrices: np.ndarray) -> list[set[tuple[int, int]]]:
        return [{(int(i), int(j)) for i, j in np.argwhere(matrix)} for matrix in matrices]

    score = alignment_error_rate(sets(a), sets(s), sets(p))
    assert score.aer == pytest.approx(1 - ((a & s).sum() + (a & p).sum()) / (a.sum() + s.sum()))
    assert score.precision == pytest.approx((a & p).sum() / a.sum())
    assert score.recall == pytest.approx((a & s).sum() / s.sum())


# Links found, sure and possible, and what `nltk.translate.metrics.alignment_error_rate` of NLTK
# 3.10.4 gave for them, with the possible links and without.
NLTK = [
    ("02 21 32 34 41 43", "04 21 32 33 43", "02 04 21 32 33 41 43", 3 / 11, 5 / 11),
    ("01 02 03 04 40 42 43", "03 12 20 34 43", "01 03 04 12 20 32 34 40 43", 5 / 12, 8 / 12),
    ("04 14 32 41 42 43 44", "04 21 23 24 44", "04 11 14 21 23 24 32 41 44", 5 / 12, 8 / 12),
    ("00 01 02 04 10 32 40 44", "10 20 21 34 40", "02 10 20 21 23 32 34 40", 7 / 13, 9 / 13),
    ("00 03 04 10 11 23 43", "00 03 10 11 40", "00 02 03 04 10 11 40 44", 3 / 12, 4 / 12),
    ("02 03 11 14 20 23 32 43", "03 11 12 23 24", "03 10 11 12 20 23 24 41 43", 5 / 13, 7 / 13),
]


@pytest.mark.parametrize(("found", "sure", "possible", "with_possible", "without"), NLTK)
def test_the_error_rate_equals_nltks(
    found: str, sure: str, possible: str, with_possible: float, without: float
) -> None:
    a, s, p = (
        {(int(link[0]), int(link[1])) for link in links.split()}
        for links in (found, sure, possible)
    )
    assert alignment_error_rate([a], [s], [p]).aer == pytest.approx(with_possible)
    assert alignment_error_rate([a], [s]).aer == pytest.approx(without)


def test_iterators_and_numbers_of_pairs() -> None:
    assert alignment_error_rate(iter([{(0, 0)}]), iter([{(0, 0)}])).aer == 0.0
    with pytest.raises(ValueError, match="pair 2 has no links in sure and possible: give a set"):
        alignment_error_rate([set(), set()], [set()])
    with pytest.raises(ValueError, match="pair 1 has no links in found"):
        alignment_error_rate([], [set()], [set()])


def test_a_null_target_word_adds_no_link() -> None:
    """It costs recall if it has a sure link, and nothing otherwise."""
    counts = LinkCounts(layers=1, heads=1)
    gold = GoldAlignment(frozenset({(0, 0), (1, 1)}))
    links = np.array([[[[0, 1, NO_WORD], [0, NO_WORD, NO_WORD]]]] * 2)  # head, mean of heads
    counts.add(links, gold, source_words=2)
    scores = counts.scores("normal")
    assert scores.heads == ((AlignmentScore(2, 2, 2, 2),),)
    assert scores.layers == (AlignmentScore(1, 2, 1, 1),)
    assert (scores.layers[0].precision, scores.layers[0].recall) == (1.0, 0.5)
    assert scores.layers[0].aer == pytest.approx(1 / 3)


def score(right: int) -> AlignmentScore:
    """Ten links, ten of them sure, so many of them right: an error rate of 1 - right / 10."""
    return AlignmentScore(10, 10, right, right)


def test_best_heads_and_averages() -> None:
    scores = AttentionScores(
        heads=((score(1), score(4)), (score(7), score(7)), (score(6), score(0))),
        layers=(score(2), score(3), score(8)),
    )
    assert scores.best_heads == (1, 0, 0)
    assert scores.best_head == (1, 0)
    assert scores.aol == pytest.approx((0.8 + 0.7 + 0.2) / 3)
    assert scores.aoh == pytest.approx((0.6 + 0.3 + 0.4) / 3)


@pytest.mark.parametrize(
    ("heads", "layers"),
    [((), ()), (((score(1),),), ()), (((),), (score(1),)), ((), (score(1),))],
)
def test_scores_without_layers_or_heads(
    heads: tuple[tuple[AlignmentScore, ...], ...], layers: tuple[AlignmentScore, ...]
) -> None:
    with pytest.raises(ValueError, match=f"got {len(layers)} layers, and heads of {len(heads)}"):
        AttentionScores(heads, layers)

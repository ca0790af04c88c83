"""Which layer, heads and sentences are shown in print."""

import pytest
from report_page import Sample
from report_samples import make_view

from relakit.analysis.results import ModelAnalysis
from relakit.report.example_choice import (
    by_null_rate,
    clause_sentences,
    nullable_aligner,
    telling_heads,
    telling_layer,
    usual_sentences,
)
from relakit.report.packing import cross_null_rate


def with_null_rates(analysis: ModelAnalysis, *layers: tuple[float, ...]) -> ModelAnalysis:
    """The analysis of a model whose cross-attention has these null rates, in three classes."""
    cross = analysis.kind("cross").model_copy(update={"null_rate": layers})
    rates = tuple(tuple((rate, rate, rate) for rate in layer) for layer in layers)
    classes = analysis.classes.model_copy(
        update={"classes": ("word", "comma", "rare"), "counts": (500, 50, 1), "null_rate": rates}
    )
    kinds = (*analysis.kinds[:2], cross)
    return analysis.model_copy(update={"kinds": kinds, "classes": classes, "alignment": None})


@pytest.fixture
def analysis(sample: Sample) -> ModelAnalysis:
    return sample.analyses[0]


def test_the_layer_whose_heads_differ_most(analysis: ModelAnalysis) -> None:
    assert telling_layer(with_null_rates(analysis, (0.5, 0.6), (0.1, 0.9), (0.9, 0.9))) == 1
    assert telling_layer(with_null_rates(analysis, (0.0, 0.0), (0.0, 0.0))) == 0


def test_lowest_specialised_and_highest_heads(analysis: ModelAnalysis) -> None:
    plain = with_null_rates(analysis, (0.5, 0.1, 0.6, 0.95, 0.4, 0.3, 1.0))
    rates = [list(classes) for classes in plain.classes.null_rate[0]]
    rates[2][1] = 0.0  # wakes after commas
    rates[5][1] = 0.9
    rates[4][2] = 1.0  # of a class too rare to tell
    classes = plain.classes.model_copy(update={"null_rate": (tuple(map(tuple, rates)),)})
    special = plain.model_copy(update={"classes": classes})
    assert telling_heads(special, 0) == [1, 5, 2, 3]


def test_few_heads_are_all_shown(analysis: ModelAnalysis) -> None:
    assert telling_heads(with_null_rates(analysis, (0.3, 1.0, 0.1)), 0) == [2, 0, 1]


def test_a_head_that_aligns_and_is_null_at_times(analysis: ModelAnalysis) -> None:
    without_gold = with_null_rates(analysis, (0.01, 0.4, 0.2, 0.99))
    assert nullable_aligner(without_gold, 0) == 2
    assert nullable_aligner(with_null_rates(analysis, (0.0, 0.0)), 0) == 0
    assert analysis.alignment is not None
    scores = analysis.alignment.scores(analysis.alignment.best_reading).heads[0]
    rated = with_null_rates(analysis, (0.01, 0.4, 0.2, 0.99))
    rated = rated.model_copy(update={"alignment": analysis.alignment})
    assert nullable_aligner(rated, 0) == min((1, 2), key=lambda head: scores[head].aer)


def test_sentences() -> None:
    words = [*"abcdefghijkl"]
    views = [
        make_view(number, text, text, sparse=True)
        for number, text in enumerate(
            [
                "a",
                " ".join(words),
                " ".join(words[:9]) + " , so",
                "a , b",
                " , ".join(words * 5),
                " ".join(words * 2),
            ]
        )
    ]
    assert [view.index for view in usual_sentences(views, 2)] == [1, 2]
    assert [view.index for view in clause_sentences(views, 2)] == [2, 3]
    low, high = by_null_rate(views, 5)
    assert {view.index for view in low + high} <= {1, 2, 5}, "neither too short nor too long"
    assert len(low) == len(high) == 1
    assert cross_null_rate(low[0]) <= cross_null_rate(high[0])


def test_commas_of_all_scripts_make_clauses() -> None:
    texts = ["a b c ; d e f g", "我们 来 了 ， 他们 走 了", "x y"]
    views = [make_view(n, text, text, sparse=True) for n, text in enumerate(texts)]
    assert [view.index for view in clause_sentences(views, 3)] == [1, 0, 2]

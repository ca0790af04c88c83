"""Rankings of pairs against labels: what each area is of, and on which pairs a head is chosen."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from relakit.analysis import Estimate, PairScores, QualityRanking, auc, rank_quality, score_pairs
from relakit.analysis.ranking import good_share
from relakit.data.generated import generate_pairs
from relakit.data.planted_noise import plant_text_noise
from relakit.data.tokenizer import Tokenizer
from relakit.model import Transformer

ModelMaker = Callable[[str], Transformer]
LABELS = ("clean", "copied", "shuffled")


def random_scores(pairs: int, seed: int, *, mass: bool = True) -> PairScores:
    """Of two layers with three heads, which know nothing about labels."""
    random = np.random.default_rng(seed)
    queries = random.integers(5, 30, pairs)
    return PairScores(
        null_queries=random.binomial(queries[:, None, None], 0.4, (pairs, 2, 3)).astype(np.int32),
        queries=queries,
        cross_entropy=random.normal(3, 1, pairs),
        mass=random.exponential(1, (pairs, 2)) if mass else None,
    )


@pytest.fixture
def labels() -> list[str]:
    return np.random.default_rng(9).choice(LABELS, 240).tolist()


@pytest.fixture
def half() -> np.ndarray:
    return np.arange(240) % 2 == 0


def check_area(found: Estimate, scores: np.ndarray, is_bad: np.ndarray) -> None:
    assert found.value == auc(scores, is_bad)
    assert found.low < found.value < found.high


def test_good_shares_at_either_end() -> None:
    """Of thirty pairs three are a tenth; where two share the third place, each counts half."""
    rates = np.array([0.1, 0.2, 0.3, 0.3, *[0.5] * 23, 0.8, 0.9, 1.0])
    is_good = np.array([True, False, True, False, *[True] * 23, False, False, True])
    share = good_share(rates, is_good)
    assert share.lowest == pytest.approx((1 + 0 + 0.5) / 3)
    assert share.highest == pytest.approx(1 / 3)
    assert share.all == pytest.approx(26 / 30)


def test_what_each_area_is_of(labels: list[str], half: np.ndarray) -> None:
    scores = random_scores(240, seed=1)
    ranking = rank_quality(scores, labels, choosing=half)
    named = np.array(labels)
    assert ranking.good_labels == ("clean",)
    assert ranking.chosen_on == 120
    assert list(ranking.by_label) == ["copied", "shuffled"]
    cases = {"copied": ["copied"], "shuffled": ["shuffled"], None: ["copied", "shuffled"]}
    for label, bad in cases.items():
        areas = ranking.overall if label is None else ranking.by_label[label]
        rows = [n for n in range(240) if not half[n] and named[n] in ("clean", *bad)]
        is_bad = named[rows] != "clean"
        assert (areas.good, areas.bad) == ((~is_bad).sum(), is_bad.sum())
        rates = (scores.null_queries / scores.queries[:, None, None])[rows]
        check_area(areas.null_rate, np.round(rates.mean((1, 2)), 12), is_bad)
        for layer in range(2):
            check_area(areas.layer_null_rate[layer], np.round(rates[:, layer].mean(1), 12), is_bad)
            check_area(areas.low_mass[layer], -scores.mass[rows, layer], is_bad)
        check_area(areas.cross_entropy, scores.cross_entropy[rows], is_bad)
        best = areas.best_head
        check_area(best.auc, rates[:, best.layer, best.head], is_bad)


def test_the_head_is_chosen_on_other_pairs(labels: list[str], half: np.ndarray) -> None:
    """One head is perfect where it is chosen and wrong elsewhere, another the other way round."""
    scores = random_scores(240, seed=2)
    is_bad = np.array(labels) != "clean"
    queries = scores.queries.astype(np.int32)
    scores.null_queries[:, 1, 2] = np.where(is_bad == half, queries, 0)
    scores.null_queries[:, 0, 1] = np.where(is_bad == half, 0, queries)
    best = rank_quality(scores, labels, choosing=half).overall.best_head
    assert (best.layer, best.head) == (1, 2)
    assert (best.auc_when_chosen, best.auc.value) == (1.0, 0.0)
    best = rank_quality(scores, labels, choosing=~half).overall.best_head
    assert (best.layer, best.head, best.auc.value) == (0, 1, 0.0)


def test_directions(labels: list[str], half: np.ndarray) -> None:
    """Bad pairs with more null queries, more cross-entropy and less mass give areas of 1."""
    named = np.array(labels)
    bad = (named != "clean").astype(np.int32)
    scores = PairScores(
        null_queries=np.broadcast_to(bad[:, None, None], (240, 2, 3)),
        queries=np.full(240, 10),
        cross_entropy=1.0 + bad,
        mass=np.broadcast_to(2.0 - bad[:, None], (240, 2)),
    )
    areas = rank_quality(scores, labels, choosing=half, given=1.0 - bad).overall
    found = (areas.null_rate, *areas.layer_null_rate, *areas.low_mass, areas.cross_entropy)
    assert areas.given_score is not None
    found += (areas.given_score,)
    assert {estimate.value for estimate in (*found, areas.best_head.auc)} == {1.0}


def test_labels_that_are_neither_good_nor_bad(half: np.ndarray) -> None:
    labels = ["V", "A", "MT", "L"] * 60
    half = np.arange(240) < 120
    scores = random_scores(240, seed=3, mass=False)
    ranking = rank_quality(scores, labels, choosing=half, good=["V"], bad=["L", "A"])
    assert list(ranking.by_label) == ["A", "L"]
    assert (ranking.overall.good, ranking.overall.bad, ranking.chosen_on) == (30, 60, 90)
    assert ranking.overall.low_mass is None
    assert rank_quality(scores, labels, choosing=half, good=["V", "MT"]).overall.good == 60


def test_planted_noise(make_model: ModelMaker, tokenizer: Tokenizer) -> None:
    """From text to a ranking; an untrained model's null rates know nothing, but it runs."""
    clean = ((pair.source_text, pair.target_text) for pair in generate_pairs(120, split="test"))
    pairs = list(plant_text_noise(clean, seed=1))
    scores = score_pairs(make_model("rela-g"), tokenizer, [pair.texts for pair in pairs])
    labels = [pair.label for pair in pairs]
    ranking = rank_quality(scores, labels, choosing=np.arange(120) % 2 == 0)
    assert set(ranking.by_label) == set(labels) - {"clean"}
    assert ranking.overall.bad == sum(areas.bad for areas in ranking.by_label.values())
    adapter = TypeAdapter(QualityRanking)
    assert adapter.validate_json(adapter.dump_json(ranking)) == ranking


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (["clean", "bad"] * 4, {}, "scores of 10 pairs, 8 labels and 10 choices"),
        (["clean", "bad"] * 5, {"given": [1.0]}, r"for each of 10 pairs, got shape \(1,\)"),
        (["clean"] * 10, {}, "there are no bad pairs: every label is a good one"),
        (["clean", "bad"] * 5, {"bad": ["clean"]}, "must be good or bad, 'clean' is both"),
        (["bad"] * 10, {}, "one of the good pairs at least must be for choosing"),
        (
            ["clean", "bad"] * 5,
            {"bad": ["bad", "L"]},
            "one of the pairs labelled 'L' at least .* got 0 and 0",
        ),
        (["clean"] * 8 + ["bad"] * 2, {}, "labelled 'bad' at least .* got 0 and 2"),
        (["bad"] * 2 + ["clean"] * 8, {}, "labelled 'bad' at least .* got 2 and 0"),
    ],
)
def test_labels_that_do_not_fit(labels: list[str], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rank_quality(random_scores(10, seed=1), labels, choosing=np.arange(10) < 5, **options)

"""Do null rates tell good sentence pairs from bad ones? Rankings against labels. No torch here.

The direction is fixed beforehand: a bad pair should have the higher null rate, the higher
cross-entropy and the lower attention mass. An area below 0.5 means that it is the other way round.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relakit.analysis.estimate import CONFIDENCE, Estimate
from relakit.analysis.pair_scores import PairScores
from relakit.analysis.roc import auc, auc_estimate
from relakit.data.noise_draw import CLEAN

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class ChosenHead:
    """The head that ranks best on some pairs, and how it ranks others. Numbered from 0."""

    layer: int
    head: int
    auc_when_chosen: float
    """On the pairs that the head was chosen on"""
    auc: Estimate
    """On the other pairs"""


EXTREME = 0.1
"""The share of pairs at either end of a ranking."""


@dataclass(frozen=True, kw_only=True)
class GoodShare:
    """The share of good pairs at either end of the ranking by null rate.

    Pairs with the same null rate share their places.
    """

    lowest: float
    """In the tenth with the lowest null rates"""
    highest: float
    """In the tenth with the highest null rates"""
    all: float


@dataclass(frozen=True, kw_only=True)
class RankingAreas:
    """Areas under the ROC curve: the chance that a bad pair ranks below a good one."""

    good: int
    """Number of good pairs"""
    bad: int
    null_rate: Estimate
    """Ranked by the null rate, averaged over layers and heads"""
    good_share: GoodShare
    """At either end of that ranking"""
    layer_null_rate: tuple[Estimate, ...]
    """Ranked by the null rate of each layer, averaged over heads"""
    best_head: ChosenHead
    """Ranked by the null rate of the one head that ranks other pairs best"""
    low_mass: tuple[Estimate, ...] | None
    """Ranked by the attention mass of each layer, where low is bad; None if it is always 1"""
    cross_entropy: Estimate
    """Ranked by the cross-entropy per target token"""
    given_score: Estimate | None = None
    """Ranked by another tool's score, where low is bad; None if there is none"""


@dataclass(frozen=True, kw_only=True)
class QualityRanking:
    """How well a model's scores rank sentence pairs by quality."""

    good_labels: tuple[str, ...]
    confidence: float
    chosen_on: int
    """How many good and bad pairs heads were chosen on; all areas are for the other pairs"""
    overall: RankingAreas
    """Good pairs against all bad ones"""
    by_label: dict[str, RankingAreas]
    """Good pairs against the pairs of each bad label"""


def rank_quality(
    scores: PairScores,
    labels: Sequence[str],
    *,
    choosing: npt.ArrayLike,
    good: Collection[str] = (CLEAN,),
    bad: Collection[str] | None = None,
    given: npt.ArrayLike | None = None,
    confidence: float = CONFIDENCE,
) -> QualityRanking:
    """Rank pairs by a model's scores, and compare the rankings with the pairs' labels.

    Args:
        scores: from `score_pairs`.
        labels: one for each pair.
        choosing: for each pair, whether it is for choosing the best head. The areas are computed on
            the pairs for which it is False.
        good: labels of good pairs.
        bad: labels of bad pairs; pairs with any other label are left out. None: all labels that are
            not good.
        given: another tool's score of each pair, to compare with.
        confidence: level of the intervals.

    Raises:
        ValueError: labels that do not fit the scores or each other, or too few pairs of a label.
    """
    is_choosing = np.asarray(choosing, dtype=np.bool_)
    if not len(scores) == len(labels) == len(is_choosing):
        raise ValueError(
            f"there must be a label and a choice for each pair, got scores of {len(scores):,} "
            f"pairs, {len(labels):,} labels and {len(is_choosing):,} choices"
        )
    given_scores = None if given is None else np.asarray(given, dtype=np.float64)
    if given_scores is not None and given_scores.shape != is_choosing.shape:
        raise ValueError(
            f"there must be a given score for each of {len(labels):,} pairs, got shape "
            f"{given_scores.shape}"
        )
    bad_labels = sorted(set(labels) - set(good) if bad is None else bad)
    both = sorted(set(good) & set(bad_labels))
    if both:
        raise ValueError(f"a label must be good or bad, {both[0]!r} is both")
    named = np.asarray(labels, dtype=np.str_)
    is_good = np.isin(named, sorted(good))
    is_bad = {label: named == label for label in bad_labels}
    _check_counts({"good": is_good, **is_bad}, is_choosing)
    any_bad = np.logical_or.reduce(list(is_bad.values()))

    def areas(bad_ones: _Mask) -> RankingAreas:
        return _areas(scores, given_scores, is_good, bad_ones, is_choosing, confidence)

    return QualityRanking(
        good_labels=tuple(sorted(good)),
        confidence=confidence,
        chosen_on=int(((is_good | any_bad) & is_choosing).sum()),
        overall=areas(any_bad),
        by_label={label: areas(mask) for label, mask in is_bad.items()},
    )


def good_share(null_rates: npt.NDArray[np.float64], is_good: _Mask) -> GoodShare:
    """The share of good pairs at either end of a ranking, and among all pairs."""
    return GoodShare(
        lowest=_share_of_first(null_rates, is_good),
        highest=_share_of_first(-null_rates, is_good),
        all=float(is_good.mean()),
    )


def _share_of_first(ranks: npt.NDArray[np.float64], is_good: _Mask) -> float:
    """The good share of the first tenth; pairs that tie for its last place count in part."""
    count = max(1, round(EXTREME * len(ranks)))
    last = np.sort(ranks)[count - 1]
    inside, tied = ranks < last, ranks == last
    good = is_good[inside].sum() + (count - inside.sum()) * is_good[tied].mean()
    return float(good / count)


def _check_counts(groups: dict[str, _Mask], is_choosing: _Mask) -> None:
    if len(groups) < 2:
        raise ValueError("there are no bad pairs: every label is a good one")
    for name, mask in groups.items():
        chosen, ranked = int((mask & is_choosing).sum()), int((mask & ~is_choosing).sum())
        if chosen < 1 or ranked < 2:
            kind = "good pairs" if name == "good" else f"pairs labelled {name!r}"
            raise ValueError(
                f"one of the {kind} at least must be for choosing a head, and two for ranking, got "
                f"{chosen} and {ranked}"
            )


def _areas(
    scores: PairScores,
    given: npt.NDArray[np.float64] | None,
    good: _Mask,
    bad: _Mask,
    is_choosing: _Mask,
    confidence: float,
) -> RankingAreas:
    ranked = (good | bad) & ~is_choosing
    chosen_on = (good | bad) & is_choosing

    def estimate(numbers: npt.NDArray[np.float64]) -> Estimate:
        return auc_estimate(numbers[ranked], bad[ranked], confidence)

    def estimates(numbers: npt.NDArray[np.float64]) -> tuple[Estimate, ...]:
        return tuple(estimate(layer) for layer in numbers.T)

    null_rate = scores.null_rate
    by_head = {
        (layer, head): auc(null_rate[chosen_on, layer, head], bad[chosen_on])
        for layer, head in np.ndindex(null_rate.shape[1:])
    }
    layer, head = max(by_head, key=by_head.__getitem__)
    return RankingAreas(
        good=int((good & ranked).sum()),
        bad=int((bad & ranked).sum()),
        null_rate=estimate(scores.mean_null_rate),
        good_share=good_share(scores.mean_null_rate[ranked], good[ranked]),
        layer_null_rate=estimates(scores.layer_null_rate),
        best_head=ChosenHead(
            layer=layer,
            head=head,
            auc_when_chosen=by_head[layer, head],
            auc=estimate(null_rate[:, layer, head]),
        ),
        low_mass=None if scores.mass is None else estimates(-scores.mass),
        cross_entropy=estimate(scores.cross_entropy),
        given_score=None if given is None else estimate(-given),
    )

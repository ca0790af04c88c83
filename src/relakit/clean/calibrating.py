"""Fit a calibration on clean pairs and planted noise that have been scored. No torch here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

import numpy as np
import numpy.typing as npt

from relakit.analysis.roc import auc_estimate
from relakit.clean.calibration import (
    Area,
    FittedOn,
    HeldOut,
    KindModel,
    LogOdds,
    NoiseCalibration,
    standardise,
    with_usual,
)
from relakit.clean.calibration_features import (
    BY_NAME,
    Columns,
    feature_matrix,
    typical_ratios,
    usable_features,
)
from relakit.clean.clean_sample import PlantedPair
from relakit.clean.logistic import fit_logistic
from relakit.clean.measures import PROBABILITY, RANKED, column_badness
from relakit.clean.score_table import Numbers, ScoreTable
from relakit.data.noise_draw import CLEAN, NOISE_KINDS, NoiseKind

PENALTY: Final = 1.0
"""Penalty on the weights: as large as costs nothing on noise planted in debates, nor on noise in
captions if model and calibration are those of debates."""
PENALTY_IN_DOUBT: Final = 10.0
"""The same if some of the pairs that count as clean are noise: smaller weights trust them less. As
large as costs nothing on captions and debates half of which are planted noise."""
RECALL: Final = 0.9
FEWEST_OF_A_KIND: Final = 5
"""Fewest noisy pairs of a kind, in the fit and held out; a kind with fewer is left out."""
MUCH_NOISE: Final = 0.3
"""Share of noise in a sample that is worth a warning."""
FEWEST_LEFT: Final = 0.1
"""Smallest share of the fit's pairs that must remain as clean ones that are not doubted."""
_ROUNDS: Final = 5
_EDGE: Final = 1.0
"""Percent at either end that are clipped before the spread of a feature is taken."""
_DIGITS: Final = 4
"""Digits of the log-odds that are kept for plots"""


@dataclass(frozen=True)
class Fitted:
    """A calibration, and what users should know about it."""

    calibration: NoiseCalibration
    left_out: tuple[str, ...]
    """Features that are missing, or the same for all pairs"""
    kinds_left_out: tuple[NoiseKind, ...]

    def notes(self) -> Iterator[str]:
        """What users should know."""
        fitted_on = self.calibration.fitted_on
        if self.left_out:
            yield (
                f"the calibration does without {', '.join(self.left_out)}: not known, or the same "
                "for all pairs"
            )
        if self.kinds_left_out:
            yield (
                f"no {' or '.join(self.kinds_left_out)} noise could be planted, so it is not known "
                "what that looks like"
            )
        sample = fitted_on.clean + fitted_on.dropped
        if fitted_on.dropped > MUCH_NOISE * sample:
            yield (
                f"{fitted_on.dropped:,} of {sample:,} pairs that were drawn as clean look like "
                "noise; if most of the corpus is noise, name clean pairs with --clean"
            )


@dataclass(frozen=True)
class Origin:
    """Where the clean pairs come from."""

    files: tuple[str, ...]
    candidates: int
    are_known: bool
    """Whether they are known to be clean: then none is left out for looking like noise."""
    seed: int
    scored_with: Mapping[str, str | int | None]


def read_columns(table: ScoreTable) -> dict[str, Numbers]:
    """All numbers of a small table."""
    blocks = [block.numbers for block in table.blocks()]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def fit_calibration(
    pairs: Sequence[PlantedPair], columns: Columns, origin: Origin, *, expected_noise: float
) -> Fitted:
    """Fit one model for each kind of noise on one part of the pairs, and test them on the other.

    Unless the pairs are known to be clean, those of the sample that look more like planted noise
    than like the rest of the sample are left out, and the fit is repeated. The sample has noise,
    too, but there is more of it in what was planted, so noise comes out on that side.

    Args:
        pairs: see `relakit.clean.clean_sample.plant`.
        columns: their scores.
        origin: where the clean pairs come from.
        expected_noise: share of pairs assumed to be noise before anything is known about them.

    Raises:
        ValueError: too little is left to learn from.
    """
    labels = np.array([pair.label for pair in pairs])
    is_fit = np.array([pair.part == "fit" for pair in pairs])
    kinds = [
        kind
        for kind in NOISE_KINDS
        if min(((labels == kind) & part).sum() for part in (is_fit, ~is_fit)) >= FEWEST_OF_A_KIND
    ]
    if not kinds:
        raise ValueError("no noise can be planted in the clean pairs: they are too few or short")
    is_clean = labels == CLEAN
    typical = typical_ratios({name: c[is_fit & is_clean] for name, c in columns.items()})
    names, left_out = usable_features({name: c[is_fit] for name, c in columns.items()}, typical)
    scaled = _Scaled.of(feature_matrix(columns, names, typical), is_fit, is_clean)
    origins = None if origin.are_known else np.array([pair.origin for pair in pairs])
    signs = np.array([BY_NAME[name].sign for name in names])
    models, chosen = _fit_without_doubted(scaled.rows, labels, is_fit, kinds, signs, origins)
    calibration = NoiseCalibration(
        features=tuple(names),
        medians=tuple(scaled.medians.tolist()),
        scales=tuple(scaled.scales.tolist()),
        usual=tuple(scaled.rows[chosen & is_clean].mean(axis=0).tolist()),
        typical_ratios=typical,
        expected_noise=expected_noise,
        kinds={
            kind: KindModel(
                against_clean=odds,
                against_others=_fit_against_others(scaled.rows, labels, chosen, kind, kinds),
            )
            for kind, odds in models.items()
        },
        fitted_on=FittedOn(
            origin="clean" if origin.are_known else "corpus",
            files=origin.files,
            candidates=origin.candidates,
            clean=int((chosen & is_clean).sum()),
            dropped=int((is_fit & ~chosen & is_clean).sum()),
            noise={kind: int((chosen & (labels == kind)).sum()) for kind in kinds},
            seed=origin.seed,
            scored_with=dict(origin.scored_with),
            relakit=version("relakit"),
        ),
        held_out=_held_out(
            _log_odds(models, scaled.rows)[~is_fit],
            labels[~is_fit],
            kinds,
            {name: numbers[~is_fit] for name, numbers in columns.items()},
            typical,
            are_known=origin.are_known,
        ),
    )
    not_planted = tuple(kind for kind in NOISE_KINDS if kind not in kinds)
    return Fitted(calibration, tuple(left_out), not_planted)


def _fit_without_doubted(
    rows: Numbers,
    labels: npt.NDArray[np.str_],
    is_fit: npt.NDArray[np.bool_],
    kinds: Sequence[NoiseKind],
    signs: npt.NDArray[np.int64],
    origins: npt.NDArray[np.int64] | None,
) -> tuple[dict[NoiseKind, LogOdds], npt.NDArray[np.bool_]]:
    """The models, and which pairs they were fitted on in the end.

    ``origins`` tells what was made from the same pair; None: no pair is doubted.
    """
    chosen = is_fit.copy()
    models = _fit_kinds(rows, labels, chosen, kinds, signs, PENALTY)
    for _ in range(0 if origins is None else _ROUNDS):
        assert origins is not None
        is_doubted = chosen & (labels == CLEAN) & (_log_odds(models, rows) > 0)
        left = chosen & ~np.isin(origins, origins[is_doubted])
        if not is_doubted.any() or (left & (labels == CLEAN)).sum() < FEWEST_LEFT * is_fit.sum():
            break
        if any((left & (labels == kind)).sum() < FEWEST_OF_A_KIND for kind in kinds):
            break  # noise is left out together with the pair that it was made from
        chosen = left
        models = _fit_kinds(rows, labels, chosen, kinds, signs, PENALTY)
    if origins is not None:  # what is left may still be noise
        models = _fit_kinds(rows, labels, chosen, kinds, signs, PENALTY_IN_DOUBT)
    return models, chosen


@dataclass(frozen=True)
class _Scaled:
    rows: Numbers
    medians: Numbers
    scales: Numbers

    @classmethod
    def of(
        cls,
        features: Numbers,
        is_fit: npt.NDArray[np.bool_],
        is_clean: npt.NDArray[np.bool_],
    ) -> "_Scaled":
        fitted = features[is_fit]
        medians = np.nanmedian(fitted, axis=0)
        low, high = np.nanpercentile(fitted, [_EDGE, 100 - _EDGE], axis=0)
        scales = np.nanstd(np.clip(fitted, low, high), axis=0)
        scales = np.where(scales > 0, scales, np.nanstd(fitted, axis=0))
        rows = standardise(features, medians, scales)
        clean = rows[is_fit & is_clean]
        known = np.isfinite(clean)
        usual = np.where(known, clean, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        return cls(with_usual(rows, usual), medians, scales)


def _fit_kinds(
    rows: Numbers,
    labels: npt.NDArray[np.str_],
    chosen: npt.NDArray[np.bool_],
    kinds: Sequence[NoiseKind],
    signs: npt.NDArray[np.int64],
    penalty: float,
) -> dict[NoiseKind, LogOdds]:
    """The odds of each kind against a clean pair."""
    models = {}
    for kind in kinds:
        some = chosen & ((labels == CLEAN) | (labels == kind))
        models[kind] = _fitted_odds(rows[some], labels[some] == kind, penalty, signs)
    return models


def _fit_against_others(
    rows: Numbers,
    labels: npt.NDArray[np.str_],
    chosen: npt.NDArray[np.bool_],
    kind: NoiseKind,
    kinds: Sequence[NoiseKind],
) -> LogOdds:
    """The odds of a kind against the other kinds; even odds if there are no others."""
    if len(kinds) == 1:
        return LogOdds(bias=0.0, weights=(0.0,) * rows.shape[1])
    noise = chosen & np.isin(labels, kinds)
    return _fitted_odds(rows[noise], labels[noise] == kind, PENALTY)


def _fitted_odds(
    rows: Numbers,
    labels: npt.NDArray[np.bool_],
    penalty: float,
    signs: npt.NDArray[np.int64] | None = None,
) -> LogOdds:
    fit = fit_logistic(rows, labels, penalty=penalty, signs=signs)
    return LogOdds(bias=fit.bias, weights=tuple(fit.coefficients.tolist()))


def _log_odds(models: Mapping[NoiseKind, LogOdds], rows: Numbers) -> Numbers:
    """The log-odds of noise, if all kinds together are as likely as a clean pair."""
    of_kinds = [model.of(rows) for model in models.values()]
    found: Numbers = np.logaddexp.reduce(of_kinds, axis=0) - np.log(len(models))
    return found


def _held_out(
    log_odds: Numbers,
    labels: npt.NDArray[np.str_],
    kinds: Sequence[NoiseKind],
    columns: Columns,
    typical: Mapping[str, float],
    *,
    are_known: bool,
) -> HeldOut:
    measures = {PROBABILITY: log_odds}
    for name, column in RANKED.items():
        numbers = columns.get(name)
        if numbers is not None and np.isfinite(numbers).all() and np.ptp(numbers) > 0:
            measures[name] = column_badness(column, numbers, typical.get(name, 0.0))
    rounded = np.round(log_odds, _DIGITS)

    def areas(is_clean: npt.NDArray[np.bool_]) -> dict[str, dict[NoiseKind, Area]]:
        return {
            name: {kind: _area(badness[is_clean], badness[labels == kind]) for kind in kinds}
            for name, badness in measures.items()
        }

    undoubted = (labels == CLEAN) & (log_odds <= 0)
    has_enough = undoubted.sum() >= FEWEST_OF_A_KIND
    return HeldOut(
        areas=areas(labels == CLEAN),
        areas_without_doubted=areas(undoubted) if has_enough and not are_known else None,
        clean_log_odds=tuple(rounded[labels == CLEAN].tolist()),
        noise_log_odds={kind: tuple(rounded[labels == kind].tolist()) for kind in kinds},
    )


def _area(clean: Numbers, noise: Numbers) -> Area:
    badness = np.concatenate([clean, noise])
    is_noise = np.arange(len(badness)) >= len(clean)
    found = auc_estimate(badness, is_noise)
    return Area(
        value=found.value,
        low=found.low,
        high=found.high,
        precision=precision_at(clean, noise, RECALL),
    )


def precision_at(clean: Numbers, noise: Numbers, recall: float) -> float:
    """Share of noise among rejected pairs at this recall of noise, if half of all were noise."""
    cut = np.sort(noise)[::-1][max(0, int(np.ceil(recall * len(noise))) - 1)]
    found, wrong = float((noise >= cut).mean()), float((clean >= cut).mean())
    return found / (found + wrong)

"""What a calibrated probability is made of: numbers computed from the columns of a score table.

One table, `FEATURES`, lists them, with the columns they come from and what they mean in words.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from relakit.clean.score_table import Numbers

Columns: TypeAlias = Mapping[str, Numbers]
Ratios: TypeAlias = Mapping[str, float]
"""The typical logarithm of a ratio, by column."""
Worse: TypeAlias = Literal["high", "low", "either"]

LEAST_MASS: Final = 1e-6
"""Least attention mass, so that there is a logarithm even without attention."""
LEAST_LOSS: Final = 1e-3
"""Least loss in nats: whatever is more certain than this counts as equally certain."""
RATIO_COLUMNS: Final = ("word_ratio", "character_ratio")


@dataclass(frozen=True)
class Feature:
    """A number for each pair that speaks for or against it."""

    name: str
    columns: tuple[str, ...]
    """The columns that it is computed from"""
    compute: Callable[[Columns, Ratios], Numbers]
    above: str = ""
    """What an unusually high number means, for people; empty: nothing worth mentioning"""
    below: str = ""
    worse: Worse = "high"
    """Which numbers speak against a pair. In planted noise it may be the other way round, such as
    better German than in the clean pairs beside it; in other text that would be a wrong reason"""

    @property
    def sign(self) -> int:
        """The sign of its weight in the odds of noise; 0: any."""
        return {"high": 1, "low": -1, "either": 0}[self.worse]


def _plain(column: str, above: str, below: str = "", worse: Worse = "high") -> Feature:
    return Feature(column, (column,), lambda c, _: c[column], above, below, worse)


def _share(name: str, column: str, of: str, above: str, worse: Worse = "high") -> Feature:
    return Feature(name, (column, of), lambda c, _: c[column] / c[of], above, worse=worse)


def _beyond(name: str, column: str, sign: int, above: str) -> Feature:
    """How far a ratio is beyond the typical one, on one side of it."""

    def compute(columns: Columns, typical: Ratios) -> Numbers:
        return np.maximum(sign * (np.log(columns[column]) - typical[column]), 0.0)

    return Feature(name, (column,), compute, above)


def _logarithm(
    name: str, column: str, least: float, above: str = "", below: str = "", worse: Worse = "high"
) -> Feature:
    def compute(columns: Columns, _: Ratios) -> Numbers:
        return np.log(np.maximum(columns[column], least))

    return Feature(name, (column,), compute, above, below, worse)


FEATURES: Final = (
    _plain("null_rate", "much of the translation attends to nothing"),
    _plain("alignment_null_rate", "much of the translation is aligned to nothing"),
    _logarithm(
        "log_attention_mass",
        "attention_mass",
        LEAST_MASS,
        above="unusually much attention to the source",
        below="little attention to the source",
        worse="either",
    ),
    _plain("unsupported_share", "target words that perhaps nothing in the source supports"),
    _share(
        "uncovered_share", "uncovered_words", "source_words",
        "source words that nothing in the target covers",
    ),
    _plain("cross_entropy", "the model finds the translation unlikely"),
    _plain("worst_loss", "a word that the model did not expect"),
    _plain("worst_span_loss", "a phrase that the model did not expect"),
    _logarithm(
        "log_end_loss", "end_loss", LEAST_LOSS, above="the translation seems to end too early"
    ),
    _plain("reverse_cross_entropy", "the reverse model finds the source unlikely"),
    _plain(
        "reverse_worst_span_loss", "a phrase of the source that the reverse model did not expect"
    ),
    _plain("dual_cross_entropy", "the models find the pair unlikely, or disagree"),
    _beyond("more_words", "word_ratio", 1, "more target words than usual for the source"),
    _beyond("fewer_words", "word_ratio", -1, "fewer target words than usual for the source"),
    _beyond("more_characters", "character_ratio", 1, "a target longer than usual for the source"),
    _beyond(
        "fewer_characters", "character_ratio", -1, "a target shorter than usual for the source"
    ),
    _plain("source_language", "", "the source is hardly in its language", worse="low"),
    _plain("target_language", "", "the target is hardly in its language", worse="low"),
    # Names on both sides speak for a pair, copies against it.
    _share(
        "same_share", "same_words", "target_words",
        "words that are the same on both sides", worse="either",
    ),
    # Which losses are usual depends on how long sentences are.
    _logarithm("log_source_words", "source_words", 1.0, worse="either"),
    _logarithm("log_target_words", "target_words", 1.0, worse="either"),
)  # fmt: skip
BY_NAME: Final[Mapping[str, Feature]] = {feature.name: feature for feature in FEATURES}


def typical_ratios(columns: Columns) -> dict[str, float]:
    """The median logarithm of each ratio, over pairs that have scores."""
    return {name: float(np.median(np.log(columns[name]))) for name in RATIO_COLUMNS}


def feature_matrix(columns: Columns, names: Sequence[str], typical: Ratios) -> Numbers:
    """``[pairs, features]``; NaN for pairs without scores, and for unknown values."""
    with np.errstate(invalid="ignore"):
        return np.column_stack([BY_NAME[name].compute(columns, typical) for name in names])


def usable_features(columns: Columns, typical: Ratios) -> tuple[list[str], list[str]]:
    """The names of features that pairs have and that differ between them, and of the others."""
    usable: list[str] = []
    others: list[str] = []
    for feature in FEATURES:
        is_there = all(
            name in columns and np.isfinite(columns[name]).any() for name in feature.columns
        )
        values = feature.compute(columns, typical) if is_there else np.zeros(1)
        known = values[np.isfinite(values)]
        (usable if known.size and np.ptp(known) > 0 else others).append(feature.name)
    return usable, others

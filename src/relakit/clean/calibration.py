"""A calibration: from the scores of a pair to the probability that it is clean. No torch here.

For each kind of noise, a logistic model gives the odds of that kind against a clean pair. A pair is
then clean with the probability 1 / (1 + sum of all odds), which is Bayes' rule for kinds that
exclude each other (Begg and Gray 1984). What it looks like if it is noise is a separate question,
as a copy is an unlikely translation, too; for that, each kind has a model against the other kinds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from relakit.clean.calibration_features import (
    BY_NAME,
    RATIO_COLUMNS,
    Columns,
    feature_matrix,
)
from relakit.clean.score_table import Numbers
from relakit.data.json_file import read_json
from relakit.data.noise_draw import CLEAN, NoiseKind
from relakit.data.setting_errors import explain_setting
from relakit.files.writing import write_whole
from relakit.shards.ledger import differences

CLIP: Final = 10.0
"""Standard deviations from the median at which numbers are clipped."""
LOOKS: Final[Mapping[NoiseKind, str]] = {
    "shuffled": "looks like the translation of something else",
    "inserted": "looks as if something was inserted",
    "truncated": "looks cut off",
    "language": "looks like a wrong language",
    "copied": "looks like a copy",
}
"""How each kind of noise is described to people."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LogOdds(_Part):
    """Log-odds of one thing against another, if both are equally likely to begin with."""

    bias: FiniteFloat
    weights: tuple[FiniteFloat, ...]
    """The weight of each feature, which is in standard deviations from its median"""

    def of(self, rows: Numbers) -> Numbers:
        """The log-odds of pairs, given their standardised features ``[pairs, features]``."""
        found: Numbers = self.bias + rows @ np.array(self.weights)
        return found


class KindModel(_Part):
    """How one kind of noise is recognised."""

    against_clean: LogOdds
    against_others: LogOdds
    """Against the other kinds of noise"""


class Area(_Part):
    """An area under the ROC curve with its interval, and the precision at a recall of 90%."""

    value: float
    low: float
    high: float
    precision: float
    """Share of noise among the pairs that are taken for noise when 90% of it is found, if half of
    all pairs were noise"""


class HeldOut(_Part):
    """How well planted noise was told apart from clean pairs that the fit had not seen."""

    areas: dict[str, dict[NoiseKind, Area]]
    """By what ranks the pairs (``probability`` or a column), then by kind"""
    areas_without_doubted: dict[str, dict[NoiseKind, Area]] | None
    """The same without pairs of the sample that look like noise; None if all are known to be clean,
    or too few are left. `areas` are too low, as noise in the corpus counts as clean, and these are
    too high, as it is the calibration itself that doubts pairs"""
    clean_log_odds: tuple[FiniteFloat, ...]
    """Log-odds of noise for each clean pair, if noise is as likely as not to begin with"""
    noise_log_odds: dict[NoiseKind, tuple[FiniteFloat, ...]]
    """Log-odds of noise for the pairs of each kind"""


class FittedOn(_Part):
    """What a calibration was fitted on."""

    origin: Literal["corpus", "clean"]
    """``corpus``: a sample of the corpus that seemed clean. ``clean``: pairs from --clean."""
    files: tuple[str, ...]
    candidates: int
    """How many pairs the sample was drawn from"""
    clean: int
    """Pairs of the fit that counted as clean"""
    dropped: int
    """Pairs of the sample that looked like noise, and were left out of the fit"""
    noise: dict[NoiseKind, int]
    seed: int
    scored_with: dict[str, str | int | None]
    """Digests of the model files, and settings"""
    relakit: str


class NoiseCalibration(_Part):
    """Turns the columns of a score table into probabilities."""

    format: Literal["relakit-calibration"] = "relakit-calibration"
    version: Literal[2] = 2
    features: tuple[str, ...] = Field(min_length=1)
    medians: tuple[FiniteFloat, ...]
    scales: tuple[FiniteFloat, ...]
    """Standard deviations"""
    usual: tuple[FiniteFloat, ...]
    """The mean of each feature over clean pairs, in standard deviations from the median"""
    typical_ratios: dict[str, FiniteFloat]
    """The typical logarithm of each length ratio"""
    expected_noise: float = Field(gt=0, lt=1)
    kinds: dict[NoiseKind, KindModel] = Field(min_length=1)
    fitted_on: FittedOn
    held_out: HeldOut

    @model_validator(mode="after")
    def _fits_together(self) -> "NoiseCalibration":
        size = len(self.features)
        unknown = [name for name in self.features if name not in BY_NAME]
        if unknown:
            raise ValueError(f"unknown feature {unknown[0]!r}")
        lists = [self.medians, self.scales, self.usual]
        for kind in self.kinds.values():
            lists += [kind.against_clean.weights, kind.against_others.weights]
        if any(len(numbers) != size for numbers in lists):
            raise ValueError(f"there must be {size} numbers in each list, one for each feature")
        if min(self.scales) <= 0:
            raise ValueError("scales must be above 0")
        if set(self.typical_ratios) != set(RATIO_COLUMNS):
            raise ValueError(f"typical_ratios must have {' and '.join(RATIO_COLUMNS)}")
        return self

    @classmethod
    def read(cls, path: Path) -> "NoiseCalibration":
        """Read a calibration; raises OSError or ValueError, saying what is wrong, if it cannot."""
        content = read_json(path)
        if not isinstance(content, dict) or content.get("format") != "relakit-calibration":
            raise ValueError(
                f'{path} is no calibration: it has no "format": "relakit-calibration"; relakit '
                "filter --calibrate writes one"
            )
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            problem = explain_setting(error.errors()[0])
            raise ValueError(f"{path}: {problem}; calibrate again with --calibrate") from None

    def write(self, path: Path) -> None:
        write_whole(path, (self.model_dump_json(indent=1) + "\n").encode())

    def missing(self, columns: Sequence[str]) -> list[str]:
        """The columns that the calibration needs and that are not among these."""
        needed = {name for feature in self.features for name in BY_NAME[feature].columns}
        return sorted(needed - set(columns))

    def why_not_for(self, facts: Mapping[str, Any]) -> str | None:
        """Why scores with these facts are not like those it was fitted on; None if they are."""
        other = differences(self.fitted_on.scored_with, facts)
        if other is None:
            return None
        return f"was fitted on other scores: {other}; calibrate again with --calibrate"

    def standardised(self, columns: Columns) -> Numbers:
        """``[pairs, features]`` in standard deviations from the median; NaN for unscored pairs."""
        features = feature_matrix(columns, self.features, self.typical_ratios)
        rows = standardise(features, np.array(self.medians), np.array(self.scales))
        has_scores = ~np.isnan(columns["cross_entropy"])[:, None]
        return np.where(has_scores, with_usual(rows, np.array(self.usual)), rows)

    def judge(self, columns: Columns) -> "Judgement":
        """Judge pairs."""
        rows = self.standardised(columns)
        # Each kind gets an equal share of the expected noise.
        prior = np.log(self.expected_noise / len(self.kinds) / (1 - self.expected_noise))
        kinds = self.kinds.values()
        return Judgement(
            self,
            rows,
            log_odds=np.column_stack([prior + kind.against_clean.of(rows) for kind in kinds]),
            kind_log_odds=np.column_stack([kind.against_others.of(rows) for kind in kinds]),
        )


@dataclass(frozen=True)
class Judgement:
    """What a calibration says about some pairs."""

    calibration: NoiseCalibration
    rows: Numbers
    """Standardised features ``[pairs, features]``"""
    log_odds: Numbers
    """Log-odds of each kind of noise against a clean pair ``[pairs, kinds]``; NaN without scores"""
    kind_log_odds: Numbers
    """Log-odds of each kind of noise against the others ``[pairs, kinds]``; NaN without scores"""

    @cached_property
    def noise_log_odds(self) -> Numbers:
        """Log-odds of any noise against a clean pair: finer than probabilities close to 0 and 1."""
        with np.errstate(invalid="ignore"):  # NaN is intended
            found: Numbers = np.logaddexp.reduce(self.log_odds, axis=1)
        return found

    @cached_property
    def probability(self) -> Numbers:
        """The probability that a pair is clean."""
        found: Numbers = 0.5 * (1 - np.tanh(self.noise_log_odds / 2))
        return found

    def kind(self, place: int) -> NoiseKind:
        """What a pair looks like if it is noise."""
        kinds: list[NoiseKind] = list(self.calibration.kinds)
        return kinds[int(self._kind_odds(place).argmax())]

    def shares(self, place: int) -> dict[str, float]:
        """How likely a pair is to be clean, and to be each kind of noise."""
        clean = float(self.probability[place])
        odds = self._kind_odds(place)
        # These are the odds of one kind against all others together, if both were equally likely.
        kinds = odds / (odds + len(odds) - 1) if len(odds) > 1 else np.ones(1)
        kinds *= (1 - clean) / kinds.sum()
        return {CLEAN: clean, **dict(zip(self.calibration.kinds, kinds.tolist(), strict=True))}

    def _kind_odds(self, place: int) -> Numbers:
        """The odds of each kind against the others; 0 for a kind that is less likely than a clean
        pair, unless all are.
        """
        is_likely = self.log_odds[place] > 0
        found: Numbers = np.exp(np.clip(self.kind_log_odds[place], -50, 50))
        return np.where(is_likely | ~is_likely.any(), found, 0.0)

    def reasons(self, place: int, most: int = 2) -> list[str]:
        """What speaks most against a pair, in words, strongest first."""
        kind = self.calibration.kinds[self.kind(place)]
        distances = self.rows[place] - np.array(self.calibration.usual)
        against = distances * np.array(kind.against_clean.weights)
        found: list[str] = []
        for feature in np.argsort(-against):
            if against[feature] <= 0 or len(found) == most:
                break
            about = BY_NAME[self.calibration.features[feature]]
            words = about.above if distances[feature] > 0 else about.below
            if words:
                found.append(words)
        return found


def standardise(rows: Numbers, medians: Numbers, scales: Numbers) -> Numbers:
    """Convert to standard deviations from the median, clipped at `CLIP`."""
    return np.clip((rows - medians) / scales, -CLIP, CLIP)


def with_usual(rows: Numbers, usual: Numbers) -> Numbers:
    """Fill in what is unknown, such as the end of a cropped pair, so that it counts neither way.

    ``usual`` is what clean pairs have for each feature.
    """
    return np.where(np.isnan(rows), usual, rows)

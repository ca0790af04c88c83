"""The settings of `relakit filter`, and which of them go together. No torch here."""

import math
from dataclasses import dataclass
from pathlib import Path

from relakit.clean.clean_sample import FEWEST_PAIRS
from relakit.clean.measures import PROBABILITY, RANKED
from relakit.clean.score import ScoreSettings
from relakit.clean.settings import CALIBRATION_PAIRS, CALIBRATION_SEED, EXPECTED_NOISE
from relakit.data.parallel_files import ParallelFiles
from relakit.known_names import known_name
from relakit.limits import MAX_COUNT


@dataclass(frozen=True, kw_only=True)
class CalibrationSettings:
    """How a calibration is fitted.

    Raises:
        ValueError: values out of range.
    """

    clean: ParallelFiles | None = None
    """Pairs that are known to be clean; None: pairs of the corpus itself that seem clean."""
    pairs: int = CALIBRATION_PAIRS
    """Most clean pairs to use."""
    seed: int = CALIBRATION_SEED
    """Other seeds choose other pairs, and plant other noise."""
    expected_noise: float = EXPECTED_NOISE
    """Share of the corpus that is assumed to be noise before it is looked at."""

    def __post_init__(self) -> None:
        if self.pairs < FEWEST_PAIRS:
            raise ValueError(
                f"--calibration-pairs must be at least {FEWEST_PAIRS}, got {self.pairs:,}"
            )
        if not 0 <= self.seed <= MAX_COUNT:
            raise ValueError(f"--seed must be from 0 to {MAX_COUNT}, got {self.seed}")
        if not 0 < self.expected_noise < 1:
            raise ValueError(
                f"--expected-noise must be above 0 and below 1, got {self.expected_noise:g}"
            )


@dataclass(frozen=True, kw_only=True)
class FilterSettings:
    """Which pairs are kept, and by what they are judged.

    Raises:
        ValueError: settings that do not go together.
    """

    score: ScoreSettings | None = None
    """What pairs are scored with; None: they have been scored already."""
    scores: Path | None = None
    """A table from `relakit score` for this corpus; None: the corpus is scored first."""
    keep: float | None = None
    """The share of pairs to keep: the best ones."""
    threshold: float | None = None
    """How good a pair must be to be kept."""
    by: str | None = None
    """What pairs are ranked by, a column or ``probability``; None: the probability if there is a
    calibration, else dual cross-entropy if there is one, else cross-entropy."""
    calibrate: CalibrationSettings | None = None
    """Fit a calibration."""
    calibration: Path | None = None
    """A calibration that was fitted before."""
    languages: tuple[str, str] | None = None
    """The languages that the files of kept pairs are named after."""
    compress: bool = False
    """Write these files as gzip."""

    def __post_init__(self) -> None:
        self._check_sources()
        self._check_cut()

    @property
    def is_calibrated(self) -> bool:
        return self.calibrate is not None or self.calibration is not None

    def _check_sources(self) -> None:
        if self.calibrate is not None and self.calibration is not None:
            raise ValueError(
                "--calibrate fits a calibration, --calibration uses one that was fitted; give one "
                "of them"
            )
        if self.score is None and self.scores is None:
            raise ValueError("name a MODEL to score the pairs with, or their scores with --scores")
        if self.score is None and self.calibrate is not None:
            raise ValueError("--calibrate scores planted noise, and needs a MODEL for that")
        if self.score is not None and self.scores is not None and self.calibrate is None:
            raise ValueError(
                "MODEL has nothing to do: --scores has the scores already, and nothing is to be "
                "calibrated; leave one of them out"
            )

    def _check_cut(self) -> None:
        if self.keep is not None and self.threshold is not None:
            raise ValueError("--keep and --threshold exclude each other; give one of them")
        if self.keep is not None and not 0 < self.keep <= 1:
            raise ValueError(
                f"--keep is a share of the pairs, above 0 and at most 1, got {self.keep:g}"
            )
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ValueError(f"--threshold must be a number, got {self.threshold:g}")
        if self.by is not None:
            known_name("--by", self.by, (PROBABILITY, *RANKED))
        if self.by == PROBABILITY and not self.is_calibrated:
            raise ValueError("--by probability needs a calibration: --calibrate, or --calibration")
        is_probability = self.is_calibrated and self.by in (None, PROBABILITY)
        if self.keep is None and self.threshold is None and not is_probability:
            raise ValueError(
                "say which pairs to keep: a share of them (--keep 0.8), those up to a threshold "
                "(--threshold), or by a probability (--calibrate)"
            )
        threshold = self.threshold
        if is_probability and threshold is not None and not 0 < threshold < 1:
            raise ValueError(
                f"--threshold {threshold:g} is a probability here, above 0 and below 1"
            )

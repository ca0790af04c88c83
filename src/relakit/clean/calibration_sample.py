"""Where the pairs of a calibration come from, and whether tables fit it. No torch here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relakit.clean.calibrating import Origin
from relakit.clean.calibration import NoiseCalibration
from relakit.clean.clean_sample import sample_of_clean, sample_of_corpus
from relakit.clean.filter_settings import CalibrationSettings
from relakit.clean.score_table import ScoreTable
from relakit.data.parallel_files import NumberedPair, ParallelFiles


@dataclass(frozen=True)
class Sample:
    """Pairs that are assumed to be clean."""

    pairs: Sequence[NumberedPair]
    files: ParallelFiles
    candidates: int
    """How many there were to draw from"""

    def origin(
        self, settings: CalibrationSettings, scored_with: Mapping[str, str | int | None]
    ) -> Origin:
        return Origin(
            files=tuple(map(str, self.files.paths)),
            candidates=self.candidates,
            are_known=settings.clean is not None,
            seed=settings.seed,
            scored_with=scored_with,
        )


def choose_sample(
    table: ScoreTable, corpus: ParallelFiles, settings: CalibrationSettings
) -> Sample:
    """Pairs from --clean, or pairs of the corpus itself that could be clean.

    Raises:
        OSError, ValueError: something cannot be read, or there are too few pairs.
    """
    if settings.clean is not None:
        found = sample_of_clean(settings.clean, settings.pairs, settings.seed)
        return Sample(found[0], settings.clean, found[1])
    found = sample_of_corpus(table, corpus, settings.pairs, settings.seed)
    return Sample(found[0], corpus, found[1])


def filled_columns(table: ScoreTable) -> frozenset[str]:
    """The columns that have numbers, judging by the first pairs with scores.

    A column that is unknown for cropped pairs may be empty for a while.
    """
    filled: frozenset[str] = frozenset()
    for block in table.blocks():
        scored = ~block.is_blank
        found = {n for n, numbers in block.numbers.items() if np.isfinite(numbers[scored]).any()}
        if filled and found <= filled:
            return filled
        filled |= found
    if not filled:
        raise ValueError(f"{table.path} has no pair with scores: all have a blank side")
    return filled


def check_filled(calibration: NoiseCalibration, filled: frozenset[str], table: ScoreTable) -> None:
    """Raise ValueError if a calibration needs a column that is empty."""
    missing = calibration.missing(sorted(filled))
    if missing:
        raise ValueError(
            f"the column {missing[0]} of {table.path} is empty, and the calibration needs it; "
            "score the pairs as when it was fitted, or calibrate again"
        )

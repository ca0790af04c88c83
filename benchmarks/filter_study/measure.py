"""Score noisy pairs, calibrate, and measure how well each score ranks noise behind clean pairs."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from filter_study.material import Material, Noisy
from filter_study.records import FilterRecord, Separation, WordScores
from relakit.analysis import AnalysisPair
from relakit.analysis.roc import auc_estimate
from relakit.bench.machine import describe_machine
from relakit.clean.calibrating import RECALL, precision_at, read_columns
from relakit.clean.calibration import NoiseCalibration
from relakit.clean.filter import FilterJob
from relakit.clean.filter_files import CALIBRATION, SCORES
from relakit.clean.filter_settings import CalibrationSettings, FilterSettings
from relakit.clean.measures import RANKED, column_badness
from relakit.clean.score import SCORING, ScoreSettings
from relakit.clean.score_table import Numbers, ScoreTable
from relakit.data.noise_draw import CLEAN
from relakit.data.parallel_files import ParallelFiles
from relakit.files.writing import write_whole
from relakit.reproduce.eflomal import eflomal_scores, why_no_eflomal
from relakit.shards.engines.in_process import InProcess

CALIBRATED_CLEAN: Final = "calibrated on clean pairs"
CALIBRATED_SELF: Final = "calibrated on the noisy pairs themselves"
WORD_ALIGNMENT: Final = "word alignment score (eflomal, as in OpusFilter)"
BICLEANER: Final = "Bicleaner"
ANY: Final = "any"
"""All kinds of noise together."""
INSERTED: Final = "inserted"


@dataclass(frozen=True)
class Models:
    """The models that score the pairs."""

    forward: Path
    backward: Path | None
    about: str


def measure(material: Material, models: Models, work: Path, *, eflomal: bool) -> FilterRecord:
    """Measure everything about one study; files are left in ``work``."""
    noisy = material.noisy()
    files = _write([pair.texts for pair in noisy.pairs], work / "noisy")
    clean = _write(material.clean(), work / "clean")
    score = ScoreSettings(model=models.forward, reverse=models.backward)
    fitted = _Fitted.on(files, score, clean, work / "calibrated")
    columns, typical = fitted.columns, fitted.calibration.typical_ratios
    badness = {CALIBRATED_CLEAN: fitted.badness}
    with suppress(ValueError):  # too few pairs look clean
        badness[CALIBRATED_SELF] = _Fitted.on(files, score, None, work / "by-itself").badness
    for name, column in RANKED.items():
        numbers = columns.get(name)
        if numbers is not None and not np.isnan(numbers).all():
            badness[name] = column_badness(column, numbers, typical.get(name, 0.0))
    badness |= _others(material, noisy, eflomal=eflomal)
    labels = np.array([pair.label for pair in noisy.pairs])
    return FilterRecord(
        study=material.name,
        models=models.about,
        pairs={
            str(label): int(count)
            for label, count in zip(*np.unique(labels, return_counts=True), strict=True)
        },
        separations={
            name: _separations(numbers, labels, noisy) for name, numbers in badness.items()
        },
        words=_words(noisy, fitted.unsupported),
        scoring=SCORING,
        machine=describe_machine(),
    )


@dataclass(frozen=True)
class _Fitted:
    """Scores of pairs, and the calibration that judges them."""

    columns: Mapping[str, Numbers]
    unsupported: Sequence[str]
    calibration: NoiseCalibration

    @classmethod
    def on(
        cls, files: ParallelFiles, score: ScoreSettings, clean: ParallelFiles | None, folder: Path
    ) -> "_Fitted":
        """``clean``: the pairs to fit on; None: the scored pairs themselves, noise and all."""
        settings = FilterSettings(score=score, calibrate=CalibrationSettings(clean=clean))
        FilterJob(files, settings).run(folder, InProcess())
        table = ScoreTable(folder / SCORES)
        unsupported = [cell for block in table.blocks() for cell in block.texts["unsupported"]]
        return cls(read_columns(table), unsupported, NoiseCalibration.read(folder / CALIBRATION))

    @property
    def badness(self) -> Numbers:
        return self.calibration.judge(self.columns).noise_log_odds


def _write(texts: Iterable[tuple[str, str]], stem: Path) -> ParallelFiles:
    paths = (stem.with_suffix(".source"), stem.with_suffix(".target"))
    for path, side in zip(paths, zip(*texts, strict=True), strict=True):
        write_whole(path, "".join(f"{text}\n" for text in side).encode())
    return ParallelFiles(*paths)


def _others(material: Material, noisy: Noisy, *, eflomal: bool) -> dict[str, Numbers]:
    """How noisy the pairs are according to other tools."""
    found = {}
    given = [pair.score for pair in noisy.pairs]
    if None not in given:
        found[BICLEANER] = -np.array(given, dtype=np.float64)
    if eflomal:
        if reason := why_no_eflomal():
            raise ValueError(reason)
        judged = [AnalysisPair.from_texts(*pair.texts) for pair in noisy.pairs]
        found[WORD_ALIGNMENT] = np.array(eflomal_scores(material.learned(), judged)).mean(axis=1)
    return found


def _separations(
    badness: Numbers, labels: npt.NDArray[np.str_], noisy: Noisy
) -> dict[str, Separation]:
    # A pair without a score, such as one with a blank side, counts as the worst.
    badness = np.where(np.isnan(badness), np.inf, badness)
    good = badness[np.isin(labels, noisy.good)]
    kinds: Mapping[str, Sequence[str]] = {ANY: noisy.bad, **{kind: (kind,) for kind in noisy.bad}}
    return {name: _separation(good, badness[np.isin(labels, kind)]) for name, kind in kinds.items()}


def _separation(good: Numbers, bad: Numbers) -> Separation:
    both = np.concatenate([good, bad])
    estimate = auc_estimate(both, np.arange(len(both)) >= len(good))
    return Separation(auc=estimate, precision=precision_at(good, bad, RECALL))


def _words(noisy: Noisy, unsupported: Sequence[str]) -> WordScores | None:
    """How many inserted words, and how many others, were found to have no support."""
    if noisy.originals is None:
        return None
    right = found = wanted = 0
    for pair, original, cell in zip(noisy.pairs, noisy.originals, unsupported, strict=True):
        if pair.label not in (INSERTED, CLEAN):
            continue
        inserted = set() if pair.label == CLEAN else inserted_words(original, pair.target)
        marked = {int(word.partition(":")[0]) for word in cell.split()}
        right += len(marked & inserted)
        found += len(marked)
        wanted += len(inserted)
    precision, recall = right / max(1, found), right / max(1, wanted)
    total = precision + recall
    return WordScores(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / total if total else 0.0,
        words=wanted,
        by="unsupported words of clean pairs and of those with an insertion",
    )


def inserted_words(original: str, target: str) -> set[int]:
    """The indices of the words that were inserted into a text."""
    before, after = original.split(), target.split()
    same = 0
    while same < len(before) and before[same] == after[same]:
        same += 1
    return set(range(same, same + len(after) - len(before)))

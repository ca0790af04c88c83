"""From scores to a clean corpus: which pairs are kept, and why others are not. No torch here."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from relakit.clean.calibrating import fit_calibration, read_columns
from relakit.clean.calibration import NoiseCalibration
from relakit.clean.calibration_sample import (
    check_filled,
    choose_sample,
    filled_columns,
)
from relakit.clean.clean_sample import plant, write_planted
from relakit.clean.cut import Cut, cut_at, keep_best
from relakit.clean.filter_files import (
    CALIBRATION,
    PAGE,
    PLANTED,
    PLANTED_SCORES,
    SCORES,
    SUMMARY,
    FilterCounts,
    check_filter_folder,
    earlier_languages,
    empty_folder_removed,
    kept_anyway,
    kept_names,
    pair_writer,
)
from relakit.clean.filter_page import write_filter_page
from relakit.clean.filter_samples import SampleCollector
from relakit.clean.filter_settings import CalibrationSettings, FilterSettings
from relakit.clean.given_scores import check_is_of_text, check_made_by, scored_with
from relakit.clean.measures import PROBABILITY, RANKED, ColumnMeasure, Measure, ProbabilityMeasure
from relakit.clean.score import ScoreJob
from relakit.clean.score_table import ScoreTable
from relakit.clean.settings import THRESHOLD
from relakit.data.parallel_files import ParallelFiles
from relakit.data.stages import OnStage, ignore_stage
from relakit.files.locks import locked
from relakit.files.writing import carry_over, whole_folder, write_whole
from relakit.shards.cutting import SHARD_PAIRS, PairDigest
from relakit.shards.engines import Engine
from relakit.shards.ledger import OtherJobError, flat_facts
from relakit.shards.receipt import receipt_path
from relakit.shards.run import JobSummary, Progress, run_job

FORMAT: Final = "relakit-filter"
VERSION: Final = 1


@dataclass(frozen=True)
class FilterHooks:
    """Callbacks that follow the work."""

    progress: Progress = lambda done, total: None
    """During scoring: called with the number of finished pairs and the total."""
    on_resume: Callable[[int, int], None] = lambda done, total: None
    """Called with the number of shards that had been done before and the total."""
    on_stage: OnStage = ignore_stage
    """During everything else: called with what is being done."""
    note: Callable[[str], None] = lambda text: None
    """Called with what users should know."""


@dataclass(frozen=True)
class FilterResult:
    """The result of filtering."""

    folder: Path
    counts: FilterCounts
    cut: str
    """Which pairs were kept, in words"""
    calibration: NoiseCalibration | None

    @property
    def page(self) -> Path:
        return self.folder / PAGE


class FilterJob:
    """A corpus to filter. Problems with settings and models are found here, before any work.

    Raises:
        OSError, ValueError: a setting, a model directory or a table of scores is broken.
    """

    def __init__(
        self, files: ParallelFiles, settings: FilterSettings, *, shard_pairs: int = SHARD_PAIRS
    ) -> None:
        """``shard_pairs``: pairs scored at a time; finished shards are kept on interruption."""
        self.files: Final = files
        self.settings: Final = settings
        self._shard_pairs = shard_pairs
        self.scoring: Final = (
            None
            if settings.score is None
            else ScoreJob(files, settings.score, shard_pairs=shard_pairs)
        )
        self._given = None
        if settings.calibration is not None:
            self._given = NoiseCalibration.read(settings.calibration)
            self._check_models(self._given)
        if settings.scores is not None:
            self._check_columns(ScoreTable(settings.scores))

    def run(
        self,
        output: Path,
        engine: Engine,
        *,
        restart: bool = False,
        hooks: FilterHooks | None = None,
    ) -> FilterResult:
        """Filter the corpus into a folder; its result appears when it is complete.

        The scores, which take long, are kept in the folder as they are computed; the same job
        resumes from them.

        Args:
            output: the folder.
            engine: what scores pairs.
            restart: score pairs again that were scored before.
            hooks: callbacks that follow the work; None: no callbacks.

        Raises:
            OSError, ValueError: something is wrong with the input, the output or a model.
        """
        with locked(output, beside=True):
            check_filter_folder(output, scores=self.settings.scores)
            with empty_folder_removed(output):
                return _Run(self, output, engine, restart, hooks or FilterHooks()).run()

    def _check_models(self, calibration: NoiseCalibration) -> None:
        if self.scoring is None:
            return
        problem = calibration.why_not_for(self.scoring.facts)
        if problem is not None:
            raise ValueError(f"--calibration {self.settings.calibration} {problem}")

    def _check_columns(self, table: ScoreTable) -> None:
        by = self.settings.by
        if by is not None and by != PROBABILITY and not table.has(by):
            raise ValueError(f"{table.path} has no column called {by!r}, which --by names")
        if self._given is not None and (missing := self._given.missing(table.names)):
            raise ValueError(
                f"{table.path} has no column called {missing[0]!r}, which "
                f"{self.settings.calibration} needs; score the text again"
            )

    @property
    def given_calibration(self) -> NoiseCalibration | None:
        return self._given

    def planted_job(self, files: ParallelFiles) -> ScoreJob:
        """A job that scores planted noise with the models that score the corpus."""
        assert self.settings.score is not None
        return ScoreJob(files, self.settings.score, shard_pairs=self._shard_pairs)


class _Run:
    """One run of a job, in its folder."""

    def __init__(
        self, job: FilterJob, output: Path, engine: Engine, restart: bool, hooks: FilterHooks
    ) -> None:
        self._job = job
        self._settings = job.settings
        self._output = output
        self._engine = engine
        self._restart = restart
        self._hooks = hooks

    def run(self) -> FilterResult:
        table = self._scored()
        filled = filled_columns(table)
        calibration = self._job.given_calibration
        if self._settings.calibrate is not None:
            calibration = self._calibrated(table, filled, self._settings.calibrate)
        elif calibration is not None:
            check_filled(calibration, filled, table)
            self._check_fitted_on(calibration, table)
        measure = self._measure(calibration, table, filled)
        cut = self._cut(measure, table)
        return self._write(measure, cut, table, calibration)

    def _scored(self) -> ScoreTable:
        if self._settings.scores is not None:
            return self._given_table(self._settings.scores)
        assert self._job.scoring is not None
        path = self._output / SCORES
        summary = self._score(self._job.scoring, path, restart=self._restart)
        for note in (*self._job.scoring.notes(), *self._job.scoring.counted(summary.counts)):
            self._hooks.note(note)
        return ScoreTable(path)

    def _given_table(self, path: Path) -> ScoreTable:
        """The table that was given, after a check that it is about these pairs."""
        table = ScoreTable(path)
        digest = PairDigest()
        for pairs, block in table.blocks_with_pairs(self._job.files):
            digest.after(pairs)
            self._hooks.on_stage("checking the scores", block.start + len(block), None)
        check_is_of_text(path, digest.value, self._job.files)
        return table

    def _check_fitted_on(self, calibration: NoiseCalibration, table: ScoreTable) -> None:
        """Raise ValueError if a calibration is for other models than a table that was given."""
        if self._settings.scores is None:
            return
        facts = scored_with(table.path)
        if facts is None:
            self._hooks.note(
                f"{table.path} has no receipt ({receipt_path(table.path).name}) that tells which "
                f"models made it; {self._settings.calibration} must be of the same"
            )
        elif problem := calibration.why_not_for(facts):
            raise ValueError(
                f"--scores {table.path}: --calibration {self._settings.calibration} {problem}"
            )

    def _score(self, job: ScoreJob, path: Path, *, restart: bool) -> JobSummary:
        return run_job(
            job.job,
            path,
            self._engine,
            restart=restart,
            once=True,
            progress=self._hooks.progress,
            on_resume=self._hooks.on_resume,
        )

    def _calibrated(
        self, table: ScoreTable, filled: frozenset[str], settings: CalibrationSettings
    ) -> NoiseCalibration:
        self._hooks.on_stage("choosing clean pairs", 0, None)
        sample = choose_sample(table, self._job.files, settings)
        if self._settings.scores is not None:
            assert self._job.scoring is not None
            check_made_by(table, self._job.files, self._job.scoring, self._engine)
        planted = list(plant(sample.pairs, settings.seed))
        job = self._job.planted_job(write_planted(planted, self._output / PLANTED))
        path = self._output / PLANTED_SCORES
        try:
            self._score(job, path, restart=self._restart)
        except OtherJobError:  # scores of noise that an earlier command planted
            self._score(job, path, restart=True)
        columns = read_columns(ScoreTable(path))
        self._hooks.on_stage("fitting", 0, None)
        fitted = fit_calibration(
            planted,
            {name: numbers for name, numbers in columns.items() if name in filled},
            sample.origin(settings, flat_facts(job.facts)),
            expected_noise=settings.expected_noise,
        )
        for note in fitted.notes():
            self._hooks.note(note)
        return fitted.calibration

    def _measure(
        self, calibration: NoiseCalibration | None, table: ScoreTable, filled: frozenset[str]
    ) -> Measure:
        by = self._settings.by
        if calibration is not None and by in (None, PROBABILITY):
            return ProbabilityMeasure(calibration)
        if by is None:
            dual = "dual_cross_entropy"
            by = dual if dual in filled else "cross_entropy"
        if by not in filled:
            raise ValueError(
                f"the column {by} of {table.path} is empty: it needs what the pairs were scored "
                "without, such as --reverse, --languages-from or chosen heads; rank --by another"
            )
        if RANKED[by].good != "typical":
            return ColumnMeasure(by)
        ratios = [block.numbers[by][~block.is_blank] for block in table.blocks()]
        return ColumnMeasure(by, float(np.median(np.log(np.concatenate(ratios)))))

    def _cut(self, measure: Measure, table: ScoreTable) -> Cut:
        found = []
        done = 0
        for block in table.blocks():
            found.append(np.array(measure.look(block).badness))
            done += len(block)
            self._hooks.on_stage("finding the cut", done, None)
        badness = np.concatenate(found)
        if np.isnan(badness).all():
            raise ValueError(f"{table.path} has no pair with a score: nothing can be kept")
        if self._settings.keep is not None:
            return keep_best(badness, self._settings.keep)
        threshold = self._settings.threshold
        limit = measure.from_threshold(THRESHOLD if threshold is None else threshold)
        return cut_at(badness, limit)

    def _write(
        self, measure: Measure, cut: Cut, table: ScoreTable, calibration: NoiseCalibration | None
    ) -> FilterResult:
        settings = self._settings
        languages = settings.languages or earlier_languages(self._output, self._job.files.paths)
        names = kept_names(languages, compress=settings.compress)
        with whole_folder(self._output) as folder:
            for name in self._kept_from_before():
                carry_over(self._output / name, folder)
            samples = SampleCollector(cut)
            with pair_writer(folder, names, measure) as writer:
                for pairs, block in table.blocks_with_pairs(self._job.files):
                    look = measure.look(block)
                    writer.write(pairs, block, look, cut)
                    samples.add(pairs, block, look)
                    self._hooks.on_stage("writing", block.start + len(block), len(cut.badness))
            if calibration is not None:
                calibration.write(folder / CALIBRATION)
            counts = writer.counts
            document = self._summary(measure, cut, counts, names)
            write_whole(folder / SUMMARY, (json.dumps(document, indent=1) + "\n").encode())
            write_filter_page(
                folder / PAGE,
                counts=counts,
                cut=cut,
                measure=measure,
                calibration=calibration,
                samples=samples.samples,
                settings=self._in_words(document, calibration),
            )
        return FilterResult(self._output, counts, measure.in_words(cut.limit), calibration)

    def _kept_from_before(self) -> list[str]:
        """Files that stay: what took long to compute and is not made again."""
        calibration, own = self._settings.calibration, self._output / CALIBRATION
        is_other = calibration is not None and not (own.exists() and own.samefile(calibration))
        names = kept_anyway(self._output, planted=not is_other)
        stays = own.is_file() and not self._settings.is_calibrated
        return [*names, CALIBRATION] if stays else names

    def _in_words(
        self, summary: Mapping[str, Any], calibration: NoiseCalibration | None
    ) -> dict[str, Any]:
        """How the result was made, for people."""
        score = self._settings.score
        told = {
            "Corpus": summary["input"],
            "Scores": summary["scores"],
            "Model": None if score is None else score.model,
            "Reverse model": None if score is None else score.reverse,
            "Ranked by": summary["by"],
            "Keep": summary["keep"],
            "Threshold": summary["threshold"],
        }
        if calibration is not None:
            fitted_on = calibration.fitted_on
            told |= {
                "Calibration": summary["calibration"],
                "Calibrated on": fitted_on.files,
                "Pairs to choose from": f"{fitted_on.candidates:,}",
                "Expected noise": f"{calibration.expected_noise:.0%}",
                "Seed": fitted_on.seed,
            }
        return {**told, "relakit": summary["relakit"]}

    def _summary(
        self, measure: Measure, cut: Cut, counts: FilterCounts, names: tuple[str, str]
    ) -> dict[str, Any]:
        settings = self._settings
        return {
            "format": FORMAT,
            "version": VERSION,
            "relakit": version("relakit"),
            "input": [str(path) for path in self._job.files.paths],
            "scores": str(settings.scores or SCORES),
            "scored_with": None if self._job.scoring is None else dict(self._job.scoring.facts),
            "calibration": str(settings.calibration or CALIBRATION)
            if settings.is_calibrated
            else None,
            "by": measure.name,
            "keep": settings.keep,
            "threshold": settings.threshold,
            "cut": measure.shown(cut.limit),
            "pairs": counts.pairs,
            "kept": counts.kept,
            "rejected": counts.rejected,
            "reasons": dict(counts.reasons.most_common()),
            "files": list(names),
        }

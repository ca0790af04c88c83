"""What a model was like during training, with one file per measurement."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from record_files import read_record_file, write_record_file
from relakit.analysis.alignment_bootstrap import AlignmentEstimates
from relakit.analysis.estimate import Estimate
from relakit.analysis.links import READINGS
from relakit.analysis.results import ModelAnalysis
from relakit.bench.machine import Machine, describe_machine
from relakit.reproduce.corpora import Scale
from relakit.reproduce.records import RunRecord
from relakit.reproduce.runs import Run

COLUMNS = tuple(f"{way}, {reading}" for reading in READINGS for way in ("AoL", "AoH"))
"""Columns of the paper's Table 5."""


@dataclass(frozen=True, kw_only=True)
class Measures:
    """The measures that the paper's claims about six layers are about."""

    gold: str
    aer: dict[str, Estimate]
    """Alignment error rates by column"""
    gaps: list[Estimate]
    """By layer: null rate of shuffled pairs minus null rate of the original pairs"""

    @classmethod
    def of(cls, gold: str, found: AlignmentEstimates, attention: ModelAnalysis) -> "Measures":
        assert attention.shuffled is not None
        aer: dict[str, Estimate] = {}
        for reading in READINGS:
            of_reading = getattr(found, reading)
            aer |= {f"AoL, {reading}": of_reading.aol, f"AoH, {reading}": of_reading.aoh}
        return cls(gold=gold, aer=aer, gaps=[gap.estimate for gap in attention.shuffled.cross_gap])

    @classmethod
    def of_record(cls, record: RunRecord) -> "Measures | None":
        """The measures of the trained model; None if it was not analyzed."""
        if record.attention is None or not record.alignments:
            return None
        gold, study = next(iter(record.alignments.items()))
        return cls.of(gold, study.estimates["ignored"], record.attention)


@dataclass(frozen=True, kw_only=True)
class LongerRecord:
    """A run's model after some of its updates."""

    scale: Scale
    corpus: str
    row: str
    seed: int
    recipe: str | None = None
    """The recipe that the run was trained with; None: the one of `relakit reproduce`"""
    update: int
    bleu: float | None
    """BLEU on the validation set, as measured during training"""
    measures: Measures
    machine: Machine

    @classmethod
    def of(
        cls, run: Run, recipe: str | None, update: int, bleu: float | None, measures: Measures
    ) -> "LongerRecord":
        return cls(
            scale=run.scale,
            corpus=run.corpus,
            row=run.row,
            seed=run.seed,
            recipe=recipe,
            update=update,
            bleu=bleu,
            measures=measures,
            machine=describe_machine(),
        )

    @property
    def run(self) -> Run:
        return Run(scale=self.scale, corpus=self.corpus, row=self.row, seed=self.seed)


def write_longer_record(folder: Path, record: LongerRecord) -> None:
    names = (record.run.name.replace("/", "-"), record.recipe, str(record.update))
    write_record_file(folder / f"{'-'.join(filter(None, names))}.json", record)


def read_longer_records(folder: Path) -> list[LongerRecord]:
    """All records in a folder, sorted by run, recipe and update."""
    records: Iterable[LongerRecord] = map(_read, folder.glob("*.json"))
    return sorted(records, key=lambda record: (record.run.name, record.recipe or "", record.update))


def _read(path: Path) -> LongerRecord:
    content: dict[str, Any] = read_record_file(path)
    measures = content["measures"]
    content["measures"] = Measures(
        gold=measures["gold"],
        aer={column: Estimate(**one) for column, one in measures["aer"].items()},
        gaps=[Estimate(**one) for one in measures["gaps"]],
    )
    return LongerRecord(**{**content, "machine": Machine(**content["machine"])})

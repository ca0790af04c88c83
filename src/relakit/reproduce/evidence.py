"""Numbers of all seeds of a row, as tables and claims read them from the result files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from relakit.analysis.estimate import Estimate
from relakit.analysis.links import EndWeight, Reading
from relakit.analysis.results import Kind, mean_of
from relakit.reproduce.corpora import CORPORA, DEMO, SCALES, Scale
from relakit.reproduce.records import Records, RunRecord
from relakit.reproduce.statistics import Seeds

Measure: TypeAlias = Callable[[RunRecord], float | None]
"""A number of a run; None where it has none."""


@dataclass(frozen=True)
class Setting:
    """Where something was measured: a corpus at a scale."""

    scale: Scale
    corpus: str

    @property
    def label(self) -> str:
        """``Multi30k en-de, tiny``"""
        return f"{CORPORA[self.corpus].label}, {self.scale}"


class Evidence:
    """The result files, asked by setting and row."""

    def __init__(self, records: Records, results: Path) -> None:
        self.records = records
        self.results = results
        """The folder that they are in, with those of benchmarks"""

    def settings(self) -> list[Setting]:
        """Where the paper's claims were measured, small before large."""
        found = {(run.scale, run.corpus) for run in self.records}
        return [
            Setting(scale, corpus)
            for scale in SCALES
            for corpus in CORPORA
            if (scale, corpus) in found and corpus != DEMO
        ]

    def runs(self, setting: Setting, row: str) -> list[RunRecord]:
        return self.records.of(setting.scale, setting.corpus, row)

    def seeds(self, setting: Setting, row: str, measure: Measure) -> Seeds | None:
        """The number of each seed; None if no run has it."""
        values = [measure(record) for record in self.runs(setting, row)]
        known = tuple(value for value in values if value is not None)
        return Seeds(known) if known else None

    def failed(self, setting: Setting, row: str) -> int:
        """How many runs of a row failed."""
        return sum(run.has_failed for run in self.runs(setting, row))


@dataclass(frozen=True)
class ErrorRate:
    """One of the numbers of Table 5."""

    gold: str
    end: EndWeight
    reading: Reading
    number: str
    """``aol`` or ``aoh``"""

    def of(self, evidence: Evidence, setting: Setting, row: str) -> list[Estimate]:
        """Of each run that has it, with its interval over sentences."""
        studies = [run.alignments.get(self.gold) for run in evidence.runs(setting, row)]
        return [
            getattr(getattr(study.estimates[self.end], self.reading), self.number)
            for study in studies
            if study is not None
        ]


def bleu(record: RunRecord) -> float | None:
    """Of the test set."""
    return record.bleu


def mean_sparsity(kind: Kind) -> Measure:
    """Over layers and heads."""

    def measure(record: RunRecord) -> float | None:
        return None if record.attention is None else mean_of(record.attention.kind(kind).sparsity)

    return measure


def mean_null_rate(kind: Kind) -> Measure:
    """Over layers and heads."""

    def measure(record: RunRecord) -> float | None:
        return None if record.attention is None else mean_of(record.attention.kind(kind).null_rate)

    return measure


def mean_diversity(kind: Kind, temperature: str) -> Measure:
    """Over layers."""

    def measure(record: RunRecord) -> float | None:
        if record.attention is None:
            return None
        layers = record.attention.kind(kind).diversity.get(temperature)
        return None if layers is None else mean_of([layers])

    return measure


def means_over_seeds(layers: Sequence[Sequence[float | None]]) -> list[float]:
    """Of each layer: the mean over the seeds, each of which has a number for every layer."""
    return [
        Seeds(tuple(value for value in seeds if value is not None)).mean
        for seeds in zip(*layers, strict=True)
    ]

"""A row's numbers for all its seeds, as tables and claims read them from the result files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from relakit.analysis.estimate import Estimate
from relakit.analysis.links import EndWeight, Reading
from relakit.analysis.results import mean_of
from relakit.attention_kinds import AttentionKind
from relakit.reproduce.corpora import CORPORA, DEMO, SCALES, Scale
from relakit.reproduce.records import AlignmentStudy, Records, RunRecord
from relakit.reproduce.runs import Run
from relakit.reproduce.statistics import Seeds

Measure: TypeAlias = Callable[[RunRecord], float | None]
"""Takes a number from a run's record; None where there is none."""


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
    """The result files, looked up by setting and row."""

    def __init__(self, records: Records, results: Path) -> None:
        self.records = records
        self.results = results
        """The folder that they are in, along with those of benchmarks"""

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
        """The measured number for each seed; None if no run has it."""
        values = [measure(record) for record in self.runs(setting, row)]
        known = tuple(value for value in values if value is not None)
        return Seeds(known) if known else None

    def alignments(self, setting: Setting, gold: str) -> dict[Run, AlignmentStudy]:
        """The studies by run, of those runs that were compared with the same links as most."""
        found = self._all_alignments(setting, gold)
        several = list(found.values())
        # A study without a digest is taken to match any other with as many links.
        certain = [one for one in several if one.gold_digest is not None] or several
        usual = max(certain, key=lambda one: sum(map(one.has_gold_of, several)), default=None)
        return {run: one for run, one in found.items() if usual and one.has_gold_of(usual)}

    def with_other_links(self, setting: Setting, gold: str) -> list[Run]:
        """The runs left out of `alignments`, whose error rates cannot be compared with those."""
        counted = self.alignments(setting, gold)
        return [run for run in self._all_alignments(setting, gold) if run not in counted]

    def _all_alignments(self, setting: Setting, gold: str) -> dict[Run, AlignmentStudy]:
        return {
            record.run: record.alignments[gold]
            for record in self._all_rows(setting)
            if gold in record.alignments
        }

    def gold_sets(self, setting: Setting) -> list[str]:
        """The names of the gold sets that runs were compared with."""
        return sorted({gold for record in self._all_rows(setting) for gold in record.alignments})

    def _all_rows(self, setting: Setting) -> list[RunRecord]:
        here = (setting.scale, setting.corpus)
        return [
            self.records[run] for run in sorted(self.records) if (run.scale, run.corpus) == here
        ]

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
        """The rate of each run that has it, with its interval over sentences."""
        return [
            getattr(getattr(study.estimates[self.end], self.reading), self.number)
            for run, study in evidence.alignments(setting, self.gold).items()
            if run.row == row
        ]


def bleu(record: RunRecord) -> float | None:
    """BLEU on the test set."""
    return record.bleu


def mean_sparsity(kind: AttentionKind) -> Measure:
    """Measures the mean sparsity over layers and heads."""

    def measure(record: RunRecord) -> float | None:
        return None if record.attention is None else mean_of(record.attention.kind(kind).sparsity)

    return measure


def mean_null_rate(kind: AttentionKind) -> Measure:
    """Measures the mean null rate over layers and heads."""

    def measure(record: RunRecord) -> float | None:
        return None if record.attention is None else mean_of(record.attention.kind(kind).null_rate)

    return measure


def mean_diversity(kind: AttentionKind, temperature: str) -> Measure:
    """Measures the mean diversity over layers."""

    def measure(record: RunRecord) -> float | None:
        if record.attention is None:
            return None
        layers = record.attention.kind(kind).diversity.get(temperature)
        return None if layers is None else mean_of([layers])

    return measure


def means_over_seeds(layers: Sequence[Sequence[float | None]]) -> list[float]:
    """For each layer, the mean over seeds; ``layers`` has each seed's numbers for all layers."""
    return [
        Seeds(tuple(value for value in seeds if value is not None)).mean
        for seeds in zip(*layers, strict=True)
    ]

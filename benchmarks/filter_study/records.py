"""How well noise was told from clean pairs, with one file per corpus."""

from dataclasses import dataclass, replace
from pathlib import Path

from record_files import read_record_file, write_record_file
from relakit.analysis.estimate import Estimate
from relakit.bench.machine import Machine


@dataclass(frozen=True, kw_only=True)
class Separation:
    """How well something ranks noise of one kind behind clean pairs."""

    auc: Estimate
    precision: float
    """At a recall of 90%, if half of the pairs were noise"""


@dataclass(frozen=True, kw_only=True)
class WordScores:
    """How well the words of planted insertions were found to lack support."""

    precision: float
    recall: float
    f1: float
    words: int
    """How many words were inserted"""
    by: str


@dataclass(frozen=True, kw_only=True)
class FilterRecord:
    """One corpus with one pair of models."""

    study: str
    models: str
    """A description of the models"""
    pairs: dict[str, int]
    """Number of pairs by label"""
    separations: dict[str, dict[str, Separation]]
    """By the score that ranks the pairs, then by kind of noise"""
    words: WordScores | None = None
    scoring: int | None = None
    """The `SCORING` of the version that scored the pairs; None: it was not recorded"""
    machine: Machine


def write_filter_record(folder: Path, record: FilterRecord) -> None:
    write_record_file(folder / f"{record.study}.json", record)


def with_earlier_row(folder: Path, record: FilterRecord, measure: str) -> FilterRecord:
    """The record with what an earlier one has of a score that our models have no part in.

    Only if that was measured on the same pairs, as far as their numbers tell.
    """
    path = folder / f"{record.study}.json"
    earlier = _read(path) if path.is_file() else None
    if earlier is None or earlier.pairs != record.pairs or measure not in earlier.separations:
        return record
    rows = {measure: earlier.separations[measure], **record.separations}
    in_order = {name: rows[name] for name in (*record.separations, measure)}
    return replace(record, separations=in_order)


def read_filter_records(folder: Path) -> list[FilterRecord]:
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def _read(path: Path) -> FilterRecord:
    content = read_record_file(path)
    content["separations"] = {
        measure: {
            kind: Separation(auc=Estimate(**one["auc"]), precision=one["precision"])
            for kind, one in kinds.items()
        }
        for measure, kinds in content["separations"].items()
    }
    if content["words"] is not None:
        content["words"] = WordScores(**content["words"])
    return FilterRecord(**{**content, "machine": Machine(**content["machine"])})

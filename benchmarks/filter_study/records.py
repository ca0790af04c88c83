"""How well noise was told from clean pairs, in a file for each corpus."""

from dataclasses import dataclass
from pathlib import Path

from record_files import read_record_file, write_record_file
from relakit.analysis.estimate import Estimate
from relakit.bench.machine import Machine


@dataclass(frozen=True, kw_only=True)
class Separation:
    """How well something ranks noise of one kind behind clean pairs."""

    auc: Estimate
    precision: float
    """At a recall of 90%, were half of the pairs noise"""


@dataclass(frozen=True, kw_only=True)
class WordScores:
    """Words of planted insertions that were found to have no support."""

    precision: float
    recall: float
    f1: float
    words: int
    """That were inserted"""
    by: str


@dataclass(frozen=True, kw_only=True)
class FilterRecord:
    """One corpus with one pair of models."""

    study: str
    models: str
    """What they are"""
    pairs: dict[str, int]
    """By label"""
    separations: dict[str, dict[str, Separation]]
    """By what ranks the pairs, and by kind of noise"""
    words: WordScores | None = None
    machine: Machine


def write_filter_record(folder: Path, record: FilterRecord) -> None:
    write_record_file(folder / f"{record.study}.json", record)


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

"""How well each way of aligning worked, with one file per result."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from record_files import read_record_file, write_record_file
from relakit.analysis import AnalysisPair
from relakit.analysis.estimate import Estimate
from relakit.analysis.link_scores import score_links
from relakit.analysis.links import Links
from relakit.bench.machine import Machine, describe_machine
from relakit.train.result import Verdict


@dataclass(frozen=True, kw_only=True)
class Trained:
    """How a model's training ended."""

    verdict: Verdict
    updates: int
    bleu: float | None
    """Of the test set"""


@dataclass(frozen=True, kw_only=True)
class AlignmentRecord:
    """The result of one way of aligning on one corpus."""

    study: str
    system: str
    """What aligns: softmax, rela-g or eflomal"""
    way: str
    """How it aligns"""
    about: str
    """Where the links were read, or what was learned from"""
    pairs: int
    aer: Estimate
    precision: Estimate | None = None
    recall: Estimate | None = None
    null_right: float | None = None
    """Share of the target words without a gold link that got no link"""
    null_wrong: float | None = None
    """Share of the target words with a gold link that got no link"""
    trained: tuple[Trained | None, ...] = ()
    """How the system's model was trained, and the one for the other direction"""
    cpu_seconds: float | None = None
    """CPU time of learning, if this way learned something that the others did not"""
    machine: Machine

    @property
    def name(self) -> str:
        return re.sub("[^a-z0-9]+", "-", f"{self.study} {self.system} {self.way}".lower())


def score(
    study: str,
    system: str,
    way: str,
    gold: Sequence[AnalysisPair],
    found: Iterable[Links],
    *,
    about: str,
    trained: tuple[Trained | None, ...] = (),
    cpu_seconds: float | None = None,
) -> AlignmentRecord:
    """Score the links that were found for pairs with gold links."""
    links = list(found)
    judged = [
        (pair.gold, one) for pair, one in zip(gold, links, strict=True) if pair.gold is not None
    ]
    scores = score_links(judged)
    null_right, null_wrong = _nulls(gold, links)
    return AlignmentRecord(
        study=study,
        system=system,
        way=way,
        about=about,
        pairs=scores.pairs,
        aer=scores.aer,
        precision=scores.precision,
        recall=scores.recall,
        null_right=null_right,
        null_wrong=null_wrong,
        trained=trained,
        cpu_seconds=cpu_seconds,
        machine=describe_machine(),
    )


def _nulls(gold: Sequence[AnalysisPair], found: Sequence[Links]) -> tuple[float, float]:
    """Shares of unlinked words: of target words without a gold link, and of those with one."""
    counts = {False: [0, 0], True: [0, 0]}
    for pair, links in zip(gold, found, strict=True):
        assert pair.gold is not None
        linked = {target for _, target in links}
        wanted = {target for _, target in pair.gold.possible}
        for word in range(len(pair.target_words)):
            count = counts[word in wanted]
            count[0] += word not in linked
            count[1] += 1
    right, wrong = (count / max(1, total) for count, total in (counts[False], counts[True]))
    return right, wrong


def write_record(folder: Path, record: AlignmentRecord) -> None:
    write_record_file(folder / f"{record.name}.json", record)


def read_alignment_records(folder: Path) -> list[AlignmentRecord]:
    """All records in a folder, sorted by name."""
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def _read(path: Path) -> AlignmentRecord:
    content = read_record_file(path)
    for field in ("aer", "precision", "recall"):
        if content[field] is not None:
            content[field] = Estimate(**content[field])
    content["trained"] = tuple(one and Trained(**one) for one in content["trained"])
    return AlignmentRecord(**{**content, "machine": Machine(**content["machine"])})

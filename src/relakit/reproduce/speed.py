"""Speed of the attentions, read from the benchmarks' results, and the claim about it."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relakit.reproduce.claims import Claim, Finding, Verdict
from relakit.reproduce.evidence import Evidence
from relakit.reproduce.rows import OURS

TRAINING: Final = Path("benchmarks") / "table2-train.csv"
"""The results of `benchmarks/training.py`, in the results folder."""
DECODING: Final = Path("benchmarks") / "table2-decode.csv"
"""The results of `benchmarks/decoding.py`."""
PYTORCH_DECODING: Final = Path("benchmarks") / "table2-decode-pytorch.csv"
"""The same with every attention in PyTorch: only some decode in C++."""
_COLUMNS: Final = frozenset(
    [
        "case",
        "system",
        "attention",
        "precision",
        "source_length",
        "ratio",
        "ratio_lower",
        "ratio_upper",
    ]
)
SIMILAR: Final = 0.9
"""The paper calls 0.93 similar."""


@dataclass(frozen=True)
class Speed:
    """Tokens per second relative to softmax, both in one run: median and quartiles."""

    ratio: float
    low: float
    high: float

    @property
    def short(self) -> str:
        return f"{self.ratio:.2f}"

    @property
    def text(self) -> str:
        return f"{self.ratio:.2f} ({self.low:.2f} to {self.high:.2f})"


def training_speed(results: Path) -> dict[str, Speed]:
    """Training speed by attention; empty without a benchmark."""
    rows = _own_rows(results / TRAINING)
    return {row["attention"]: _speed(row) for row in rows if row["case"] == "training"}


def decoding_speed(results: Path, *, in_pytorch: bool = False) -> dict[str, Speed]:
    """Decoding speed, one sentence at a time, by attention; empty without a benchmark."""
    rows = _own_rows(results / (PYTORCH_DECODING if in_pytorch else DECODING))
    return {row["attention"]: _speed(row) for row in rows if row["case"] == "batch 1"}


def decoding_speed_by_length(results: Path) -> dict[float, dict[str, Speed]]:
    """Decoding speed by mean source length, then by attention."""
    found: dict[float, dict[str, Speed]] = {}
    for row in _own_rows(results / DECODING):
        if row["source_length"]:
            found.setdefault(float(row["source_length"]), {})[row["attention"]] = _speed(row)
    return found


def _own_rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of relakit in float32 that have a ratio."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        lacking = sorted(_COLUMNS - set(rows.fieldnames or ()))
        if lacking:
            raise ValueError(
                f"{path} is not a result of relakit's benchmarks: it has no column "
                f"{', '.join(lacking)}; remove it to have it measured again"
            )
        for row in rows:
            if row["system"] == "relakit" and row["precision"] == "fp32" and row["ratio"]:
                yield row


def _speed(row: dict[str, str]) -> Speed:
    return Speed(float(row["ratio"]), float(row["ratio_lower"]), float(row["ratio_upper"]))


def _verdict(ours: Speed, other: Speed) -> Verdict:
    if ours.low > other.high:
        return "holds"
    return "does not hold" if ours.high <= other.low else "not decidable"


def _faster_than_sparse_softmax(evidence: Evidence) -> list[Finding]:
    findings = []
    for what, speeds in (
        ("training", training_speed(evidence.results)),
        ("decoding one by one, in PyTorch", decoding_speed(evidence.results, in_pytorch=True)),
    ):
        ours = speeds.get(OURS)
        for other in ("sparsemax", "entmax15"):
            if ours is not None and other in speeds:
                measured = f"{ours.text} against {speeds[other].text} of {other}"
                findings.append(Finding(what, measured, 1, _verdict(ours, speeds[other])))
    return findings


def _nearly_as_fast_as_softmax(evidence: Evidence) -> list[Finding]:
    findings = []
    for what, speeds in (
        ("training", training_speed(evidence.results)),
        ("decoding one by one, in C++", decoding_speed(evidence.results)),
        ("decoding one by one, in PyTorch", decoding_speed(evidence.results, in_pytorch=True)),
    ):
        if OURS in speeds:
            ours = speeds[OURS]
            verdict: Verdict = "holds" if ours.low >= SIMILAR else "not decidable"
            if ours.high < SIMILAR:
                verdict = "does not hold"
            findings.append(Finding(what, ours.text, 1, verdict))
    return findings


SPEED_CLAIMS: Final = (
    Claim(
        f"ReLA-g trains and decodes at about the speed of softmax ({SIMILAR:g} of it or more, in "
        "both quartiles)",
        "training 0.93, decoding 0.98",
        _nearly_as_fast_as_softmax,
    ),
    Claim(
        "ReLA-g trains and decodes faster than sparsemax and 1.5-entmax (relative to softmax; "
        "quartiles must not overlap)",
        "training 0.93 against 0.26 and 0.27 (with PyTorch 0.95 against 0.87 and 0.90), decoding "
        "0.98 against 0.54 and 0.49",
        _faster_than_sparse_softmax,
    ),
)

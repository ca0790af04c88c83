"""Benchmark results as files: one JSON format and one CSV format for all benchmarks.

The JSON file has the machine, the settings, every turn of every round, and the table; the CSV file
has only the table, one line per case and contender. Both are written whole or not at all, so an
interrupted run leaves complete files, and can be resumed from its JSON file.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from relakit.bench.machine import Machine
from relakit.bench.rounds import CaseRounds, Spread, Turn
from relakit.files.writing import write_whole

FORMAT: Final = 2

Row = dict[str, Any]
"""One contender in one case, by column."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a result belongs to."""

    benchmark: str
    settings: Any
    """A dataclass."""
    machine: Machine

    def described(self) -> dict[str, Any]:
        """What two results must have in common to be combined, as read back from JSON."""
        described = {
            "format": FORMAT,
            "benchmark": self.benchmark,
            "machine": asdict(self.machine),
            "settings": asdict(self.settings),
        }
        comparable: dict[str, Any] = json.loads(json.dumps(described))
        return comparable


@dataclass(kw_only=True)
class Measured:
    """What was measured."""

    rows: Sequence[Row] = ()
    rounds: list[CaseRounds] = field(default_factory=list)
    """All turns; empty if cases are too short to be resumed in the middle."""
    contenders: Sequence[Mapping[str, Any]] = ()
    """The contenders with their versions, and with reasons for those that are missing."""


def write_json(path: Path, run: Run, measured: Measured) -> None:
    document = {
        **run.described(),
        "contenders": list(measured.contenders),
        "rounds": [_rounds_to_json(case) for case in measured.rounds],
        "results": list(measured.rows),
    }
    _write(path, json.dumps(document, indent=1) + "\n")


def write_csv(path: Path, rows: Sequence[Row], columns: Sequence[str] = ("case",)) -> None:
    """Write one line per row; ``columns`` are the headings if there are no rows."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]) if rows else columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    _write(path, text.getvalue())


def read_earlier(path: Path, run: Run) -> Measured:
    """What an earlier run with the same settings measured on the same machine, if anything.

    Raises:
        ValueError: the file is not a result, or was measured differently.
    """
    if not path.exists():
        return Measured()
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        found = _flat(document)
        measured = Measured(
            rows=[dict(row) for row in document["results"]],
            rounds=[_rounds_from_json(case) for case in document["rounds"]],
            contenders=list(document["contenders"]),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is not a benchmark result: {why_no_result(error)}") from None
    for name, value in _flat(run.described()).items():
        if found.get(name) != value:
            raise ValueError(
                f"cannot resume: {path} was measured with {name} = {found.get(name)!r}, now it is "
                f"{value!r}; choose another place for the results"
            )
    return measured


def why_no_result(error: Exception) -> str:
    """What is wrong with a results file that could not be parsed, and what to do about it."""
    if isinstance(error, KeyError):
        problem = f"it has no {error}"
    elif isinstance(error, json.JSONDecodeError):
        problem = "it is no JSON, or is truncated"
    elif isinstance(error, (TypeError, AttributeError, UnicodeDecodeError)):
        problem = "it has other keys or values than relakit writes"
    else:
        problem = str(error)
    return f"{problem}; remove it, or choose another place for the results"


def spread_columns(name: str, values: Spread | None) -> dict[str, float | None]:
    """Median, lower quartile and upper quartile as three columns."""
    return {
        name: None if values is None else values.median,
        f"{name}_lower": None if values is None else values.lower,
        f"{name}_upper": None if values is None else values.upper,
    }


def _flat(document: Mapping[str, Any]) -> dict[str, Any]:
    about = {name: document[name] for name in ("format", "benchmark")}
    return {**about, **document["machine"], **document["settings"]}


def _rounds_to_json(case: CaseRounds) -> dict[str, Any]:
    rounds = [
        {label: {"seconds": turn.seconds, **turn.work} for label, turn in turns.items()}
        for turns in case.rounds
    ]
    return {"case": case.case, "rounds": rounds}


def _rounds_from_json(content: Mapping[str, Any]) -> CaseRounds:
    rounds = [
        {label: _turn_from_json(turn) for label, turn in turns.items()}
        for turns in content["rounds"]
    ]
    return CaseRounds(content["case"], rounds)


def _turn_from_json(content: Mapping[str, Any]) -> Turn:
    work = {unit: count for unit, count in content.items() if unit != "seconds"}
    return Turn(content["seconds"], work)


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode())

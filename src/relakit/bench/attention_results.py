"""Results of `relakit bench attention`: all numbers, with the cases that they belong to."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from relakit.bench.cases import CASE_FIELDS, Case, parse_zeros
from relakit.bench.machine import Machine
from relakit.bench.presets import SOFTMAXES
from relakit.bench.results import (
    Measured,
    Row,
    Run,
    read_earlier,
    spread_columns,
    why_no_result,
    write_csv,
    write_json,
)
from relakit.bench.rounds import Spread
from relakit.limits import checked_threads

if TYPE_CHECKING:
    from relakit.ops.backends import BackendName

CSV_NAME: Final = "results.csv"
JSON_NAME: Final = "results.json"
BENCHMARK: Final = "attention"


@dataclass(frozen=True, kw_only=True)
class AttentionSettings:
    """How attention is measured."""

    threads: int = 1
    rounds: int | None = None
    """Rounds per case; None: as many as fit into ``seconds``."""
    seconds: float = 1.0
    """Time budget for the rounds of a case."""
    backend: "BackendName | None" = None
    """ReLA's backend; None: the one that relakit chooses."""
    memory: bool = True
    """Whether peak memory is measured."""
    memory_limit: float = 4.0
    """In GiB; a contender that would need more is left out."""
    seed: int = 0

    def __post_init__(self) -> None:
        checked_threads("threads", self.threads)
        if self.rounds is not None and self.rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {self.rounds:,}")
        for name in ("seconds", "memory_limit"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One contender in one case; numbers are None if it did not run."""

    contender: str
    backend: str | None = None
    """The backend that served ReLA."""
    rounds: int = 0
    seconds: Spread | None = None
    """Per call."""
    ratio: Spread | None = None
    """Its time divided by ReLA's in the same round; above 1, ReLA is faster."""
    gflops: float | None = None
    """Billions of operations per second, counting the operations of the dense formula."""
    peak_mib: float | None = None
    """MiB above the inputs."""
    note: str = ""
    """Why something is missing."""

    def row(self) -> Row:
        return {
            "contender": self.contender,
            "backend": self.backend,
            "rounds": self.rounds,
            **spread_columns("seconds", self.seconds),
            **spread_columns("ratio", self.ratio),
            "gflops": self.gflops,
            "peak_mib": self.peak_mib,
            "note": self.note,
        }


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """The measurements of all contenders in one case."""

    case: Case
    zeros_measured: float | None
    """Percent of ReLA's weights that are exactly 0; None if ReLA did not run."""
    measurements: tuple[Measurement, ...]

    def of(self, contender: str) -> Measurement | None:
        """A contender's measurement; None if the contender does not belong to the case."""
        return next((m for m in self.measurements if m.contender == contender), None)

    @property
    def faster_softmax(self) -> Measurement | None:
        """The faster of the softmax contenders that ran."""
        ran = [m for m in map(self.of, SOFTMAXES) if m is not None and m.ratio is not None]
        return min(ran, key=lambda m: m.ratio.median if m.ratio else 0.0, default=None)

    @property
    def softmax_ratio(self) -> float | None:
        """The time of the faster softmax attention divided by ReLA's."""
        faster = self.faster_softmax
        return None if faster is None or faster.ratio is None else faster.ratio.median

    def rows(self) -> list[Row]:
        about = {
            **asdict(self.case),
            "zeros_measured": self.zeros_measured,
            "softmax_ratio": self.softmax_ratio,
        }
        return [{**about, **measurement.row()} for measurement in self.measurements]


COLUMNS: Final = (
    *CASE_FIELDS,
    "zeros_measured",
    "softmax_ratio",
    *Measurement(contender="").row(),
)


def write_results(
    directory: Path, results: Sequence[CaseResult], settings: AttentionSettings, machine: Machine
) -> None:
    """Write results.csv and results.json into a directory, which is created if missing."""
    rows = [row for result in results for row in result.rows()]
    write_csv(directory / CSV_NAME, rows, COLUMNS)
    run = Run(benchmark=BENCHMARK, settings=settings, machine=machine)
    write_json(directory / JSON_NAME, run, Measured(rows=rows))


def read_csv(path: Path) -> list[CaseResult]:
    """Results from a CSV file that `write_results` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = set(COLUMNS) - set(reader.fieldnames or ())
        if missing:
            raise ValueError(
                f"{path} is not a benchmark result: it lacks the columns "
                f"{', '.join(sorted(missing))}"
            )
        return _results(reader, path)


def read_finished(
    directory: Path, settings: AttentionSettings, machine: Machine
) -> list[CaseResult]:
    """Results of an earlier run with the same settings on the same machine; [] if there are none.

    Raises:
        ValueError: there are results, but they were measured differently.
    """
    path = directory / JSON_NAME
    run = Run(benchmark=BENCHMARK, settings=settings, machine=machine)
    return _results(read_earlier(path, run).rows, path)


def _results(rows: Iterable[Mapping[str, Any]], path: Path) -> list[CaseResult]:
    """Results from rows; the rows of a case follow each other."""
    results: dict[Case, CaseResult] = {}
    for number, row in enumerate(rows, start=1):
        try:
            case, zeros, measurement = _parse(row)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"{path}, result {number}: {why_no_result(error)}") from None
        earlier = results[case].measurements if case in results else ()
        results[case] = CaseResult(
            case=case, zeros_measured=zeros, measurements=(*earlier, measurement)
        )
    return list(results.values())


def _parse(row: Mapping[str, Any]) -> tuple[Case, float | None, Measurement]:
    """Parse one row, whose values are typed (from JSON) or text (from CSV)."""
    case = Case(
        mode=str(row["mode"]),
        length=int(row["length"]),
        zeros=parse_zeros(str(row["zeros"])),
        dtype=str(row["dtype"]),
        heads=int(row["heads"]),
        dim=int(row["dim"]),
        batch=int(row["batch"]),
        mask=str(row["mask"]),
    )

    def number(name: str) -> float | None:
        return None if row[name] in (None, "") else float(row[name])

    def spread(name: str) -> Spread | None:
        median, lower, upper = (number(f"{name}{end}") for end in ("", "_lower", "_upper"))
        if median is None or lower is None or upper is None:
            return None
        return Spread(median, lower, upper)

    measurement = Measurement(
        contender=str(row["contender"]),
        backend=row["backend"] or None,
        rounds=int(row["rounds"]),
        seconds=spread("seconds"),
        ratio=spread("ratio"),
        gflops=number("gflops"),
        peak_mib=number("peak_mib"),
        note=str(row["note"] or ""),
    )
    return case, number("zeros_measured"), measurement

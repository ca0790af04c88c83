"""Results of a run: every number, with the case and the settings that it belongs to.

Written as CSV (one line per case and contender) and as JSON (the same lines, with machine and
settings), after every case and in one go, so that a run that is cut short leaves whole files.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from relakit.bench.cases import CASE_FIELDS, Case, parse_zeros
from relakit.bench.machine import Machine
from relakit.bench.presets import SOFTMAXES
from relakit.writing import write_whole

CSV_NAME: Final = "results.csv"
JSON_NAME: Final = "results.json"
FORMAT: Final = 1


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a run measures."""

    threads: int = 1
    rounds: int | None = None
    """Rounds per case; None: as many as fit into ``seconds``."""
    seconds: float = 2.0
    """Budget per case for the rounds."""
    backend: str | None = None
    """ReLA's backend; None: the one that relakit chooses."""
    memory: bool = True
    """Whether peak memory is measured."""
    memory_limit: float = 4.0
    """GiB; a contender that would need more is left out."""
    seed: int = 0

    @property
    def threads_label(self) -> str:
        return f"{self.threads} thread{'s' if self.threads > 1 else ''}"

    def __post_init__(self) -> None:
        for name in ("threads", "rounds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        for name in ("seconds", "memory_limit"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One contender in one case. Times are per call; None where it did not run."""

    contender: str
    backend: str | None = None
    """The backend that served ReLA."""
    rounds: int = 0
    seconds: float | None = None
    """Median over the rounds."""
    seconds_lower: float | None = None
    """First quartile."""
    seconds_upper: float | None = None
    """Third quartile."""
    ratio: float | None = None
    """Its time divided by ReLA's in the same round, median: above 1 ReLA is faster."""
    ratio_lower: float | None = None
    ratio_upper: float | None = None
    gflops: float | None = None
    """Billions of operations per second, by the count of the dense formula."""
    peak_mib: float | None = None
    """MiB above the inputs."""
    note: str = ""
    """Why something is missing."""


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """All contenders in one case."""

    case: Case
    zeros_measured: float | None
    """Percent of ReLA's weights that are exactly 0; None if ReLA did not run."""
    measurements: tuple[Measurement, ...]

    def of(self, contender: str) -> Measurement | None:
        """A contender's measurement, if it was to take part."""
        return next((m for m in self.measurements if m.contender == contender), None)

    @property
    def faster_softmax(self) -> Measurement | None:
        """The faster one of the softmax contenders that ran."""
        ran = [m for m in map(self.of, SOFTMAXES) if m is not None and m.ratio is not None]
        return min(ran, key=lambda m: m.ratio or 0.0, default=None)

    @property
    def softmax_ratio(self) -> float | None:
        """Time of the faster softmax attention divided by ReLA's."""
        return None if self.faster_softmax is None else self.faster_softmax.ratio


_MEASUREMENT_FIELDS: Final = tuple(field.name for field in fields(Measurement))
COLUMNS: Final = (*CASE_FIELDS, "zeros_measured", "softmax_ratio", *_MEASUREMENT_FIELDS)


def write_results(
    directory: Path, results: Sequence[CaseResult], settings: Settings, machine: Machine
) -> None:
    """Write results.csv and results.json into a directory, which is made if need be."""
    directory.mkdir(parents=True, exist_ok=True)
    rows = [row for result in results for row in _rows(result)]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(directory / CSV_NAME, text.getvalue().encode())
    document = {
        "format": FORMAT,
        "machine": asdict(machine),
        "settings": asdict(settings),
        "results": rows,
    }
    write_whole(directory / JSON_NAME, (json.dumps(document, indent=1) + "\n").encode())


def read_csv(path: Path) -> list[CaseResult]:
    """Results from a CSV file that `write_results` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = set(COLUMNS) - set(reader.fieldnames or ())
        if missing:
            raise ValueError(
                f"{path} is no benchmark result: it lacks the columns {', '.join(sorted(missing))}"
            )
        return _results(reader, path)


def read_finished(directory: Path, settings: Settings, machine: Machine) -> list[CaseResult]:
    """Results of an earlier run with the same settings on the same machine; [] if there are none.

    Raises:
        ValueError: there are some, but measured differently.
    """
    path = directory / JSON_NAME
    if not path.exists():
        return []
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        earlier = {**document["machine"], **document["settings"]}
        rows, version = document["results"], document["format"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no benchmark result: {error}") from None
    if version != FORMAT:
        raise ValueError(f"{path} has format {version}, this relakit reads format {FORMAT}")
    for name, value in {**asdict(machine), **asdict(settings)}.items():
        if earlier.get(name) != value:
            raise ValueError(
                f"cannot resume: the results in {directory} were measured with {name} = "
                f"{earlier.get(name)!r}, now it is {value!r}; choose another --out"
            )
    return _results(rows, path)


def _rows(result: CaseResult) -> list[dict[str, Any]]:
    about = {
        **asdict(result.case),
        "zeros_measured": result.zeros_measured,
        "softmax_ratio": result.softmax_ratio,
    }
    return [{**about, **asdict(measurement)} for measurement in result.measurements]


def _results(rows: Iterable[Mapping[str, Any]], path: Path) -> list[CaseResult]:
    """Rows back into results; a case's rows follow each other."""
    results: dict[Case, CaseResult] = {}
    for number, row in enumerate(rows, start=1):
        try:
            case, zeros, measurement = _parse(row)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}, result {number}: {error}") from None
        earlier = results[case].measurements if case in results else ()
        results[case] = CaseResult(
            case=case, zeros_measured=zeros, measurements=(*earlier, measurement)
        )
    return list(results.values())


def _parse(row: Mapping[str, Any]) -> tuple[Case, float | None, Measurement]:
    """One row, its values typed (from JSON) or text (from CSV)."""
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

    measurement = Measurement(
        contender=str(row["contender"]),
        backend=row["backend"] or None,
        rounds=int(row["rounds"]),
        seconds=number("seconds"),
        seconds_lower=number("seconds_lower"),
        seconds_upper=number("seconds_upper"),
        ratio=number("ratio"),
        ratio_lower=number("ratio_lower"),
        ratio_upper=number("ratio_upper"),
        gflops=number("gflops"),
        peak_mib=number("peak_mib"),
        note=str(row["note"] or ""),
    )
    return case, number("zeros_measured"), measurement

"""Files of results: every turn comes back, and results of different runs do not mix."""

import csv
import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from relakit.bench.machine import Machine
from relakit.bench.results import (
    Measured,
    Run,
    read_earlier,
    spread_columns,
    write_csv,
    write_json,
)
from relakit.bench.rounds import CaseRounds, Spread, Turn


@dataclass(frozen=True)
class Settings:
    steps: int = 2
    names: tuple[str, ...] = ("a", "b")


MACHINE = Machine(
    cpu="an abacus",
    system="Linux",
    relakit="1",
    torch="2",
    torch_instructions="AVX2",
    rela_instructions=None,
)
RUN = Run(benchmark="train", settings=Settings(), machine=MACHINE)
TURNS = {"a": Turn(1 / 3, {"calls": 7}), "b": Turn(0.1, {"target_tokens": 10, "sentences": 2})}
MEASURED = Measured(
    rows=[{"case": "x", "contender": "a", "ratio": 1 / 7, "note": ""}],
    rounds=[CaseRounds("x", [TURNS, {"a": TURNS["a"]}]), CaseRounds("y")],
    contenders=[{"label": "a", "about": "1.0"}],
)


def test_everything_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.json"
    write_json(path, RUN, MEASURED)
    assert read_earlier(path, RUN) == MEASURED
    assert [found.name for found in path.parent.iterdir()] == ["results.json"]


def test_nothing_there(tmp_path: Path) -> None:
    assert read_earlier(tmp_path / "none.json", RUN) == Measured()


def test_what_it_was_measured_with(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_json(path, RUN, MEASURED)
    document = json.loads(path.read_text())
    assert document["machine"]["cpu"] == "an abacus"
    assert document["settings"] == {"steps": 2, "names": ["a", "b"]}


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            replace(RUN, settings=Settings(steps=3)),
            r"results\.json was measured with steps = 2, now it is 3; choose another",
        ),
        (
            replace(RUN, machine=replace(MACHINE, cpu="fingers")),
            "measured with cpu = 'an abacus', now it is 'fingers'",
        ),
        (
            replace(RUN, benchmark="decode"),
            "measured with benchmark = 'train', now it is 'decode'",
        ),
    ],
)
def test_other_runs_are_refused(tmp_path: Path, run: Run, message: str) -> None:
    path = tmp_path / "results.json"
    write_json(path, RUN, MEASURED)
    with pytest.raises(ValueError, match=message):
        read_earlier(path, run)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1, "benchmark": "train"}'])
def test_foreign_files_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"other\.json is not a benchmark result"):
        read_earlier(path, RUN)


def test_a_csv_file_has_a_line_per_row(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.csv"
    row = {"case": "x", **spread_columns("ratio", Spread(2.0, 1.0, 3.0)), "note": "a, b"}
    write_csv(path, [row, {**row, **spread_columns("ratio", None)}])
    with path.open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first == {
        "case": "x", "ratio": "2.0", "ratio_lower": "1.0", "ratio_upper": "3.0", "note": "a, b",
    }  # fmt: skip
    assert (second["ratio"], second["ratio_lower"], second["ratio_upper"]) == ("", "", "")


def test_a_csv_file_without_rows_has_headings(tmp_path: Path) -> None:
    write_csv(tmp_path / "results.csv", [], ("mode", "length"))
    assert (tmp_path / "results.csv").read_text() == "mode,length\n"

"""Results travel to files and back with every number, and files are whole."""

import csv
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from relakit.bench.attention_results import (
    COLUMNS,
    AttentionSettings,
    CaseResult,
    Measurement,
    read_csv,
    read_finished,
    write_results,
)
from relakit.bench.cases import Case, make_case
from relakit.bench.machine import Machine
from relakit.bench.rounds import Spread
from relakit.files.writing import write_whole

MACHINE = Machine(
    cpu="some processor",
    system="some system",
    relakit="0.1.0",
    torch="2.6",
    torch_instructions="AVX2",
    rela_instructions=None,
)
SETTINGS = AttentionSettings()


def measured(contender: str, ratio: float) -> Measurement:
    return Measurement(
        contender=contender,
        backend="native" if contender == "rela" else None,
        rounds=7,
        seconds=Spread(ratio / 3, ratio / 4, ratio / 2),
        ratio=Spread(ratio, 0.9 * ratio, 1.1 * ratio),
        gflops=1e9 / 7,
        peak_mib=1 / 3,
    )


def result(case: Case, sdpa: float = 2.0, bmm: float = 3.0) -> CaseResult:
    left_out = Measurement(contender="entmax15", note='would need "9.5" GiB, too much')
    measurements = (measured("rela", 1.0), measured("sdpa", sdpa), measured("bmm-softmax", bmm))
    return CaseResult(case=case, zeros_measured=100 / 3, measurements=(*measurements, left_out))


RESULTS = [
    result(make_case("forward", 64, 50.0)),
    result(make_case("both", 64, "demo", dtype="bfloat16", mask="padding"), sdpa=4.0),
]


class TestFiles:
    def test_csv_keeps_every_number(self, tmp_path: Path) -> None:
        write_results(tmp_path, RESULTS, SETTINGS, MACHINE)
        assert read_csv(tmp_path / "results.csv") == RESULTS

    def test_json_keeps_every_number(self, tmp_path: Path) -> None:
        write_results(tmp_path, RESULTS, SETTINGS, MACHINE)
        assert read_finished(tmp_path, SETTINGS, MACHINE) == RESULTS

    def test_csv_has_a_line_per_case_and_contender(self, tmp_path: Path) -> None:
        write_results(tmp_path, RESULTS, SETTINGS, MACHINE)
        with (tmp_path / "results.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 8
        assert tuple(rows[0]) == COLUMNS
        assert [row["softmax_ratio"] for row in rows] == ["2.0"] * 4 + ["3.0"] * 4

    def test_json_says_what_it_was_measured_with(self, tmp_path: Path) -> None:
        write_results(tmp_path, RESULTS, SETTINGS, MACHINE)
        document = json.loads((tmp_path / "results.json").read_text())
        assert document["machine"] == asdict(MACHINE)
        assert document["settings"] == asdict(SETTINGS)

    def test_the_directory_holds_nothing_else(self, tmp_path: Path) -> None:
        write_results(tmp_path / "new" / "one", RESULTS, SETTINGS, MACHINE)
        names = sorted(path.name for path in (tmp_path / "new" / "one").iterdir())
        assert names == ["results.csv", "results.json"]

    def test_a_failed_write_leaves_the_old_file(self, tmp_path: Path) -> None:
        path = tmp_path / "results.csv"
        path.write_text("old")
        with pytest.raises(TypeError):
            write_whole(path, "text, not bytes")  # type: ignore[arg-type]
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_another_csv_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "other.csv").write_text("mode,length\nforward,64\n")
        with pytest.raises(
            ValueError, match="not a benchmark result: it lacks the columns backend"
        ):
            read_csv(tmp_path / "other.csv")

    def test_a_damaged_line_is_named(self, tmp_path: Path) -> None:
        write_results(tmp_path, RESULTS, SETTINGS, MACHINE)
        path = tmp_path / "results.csv"
        path.write_text(path.read_text().replace("both,64", "both,sixty-four", 1))
        with pytest.raises(ValueError, match=r"results\.csv, result 5: .*'sixty-four'"):
            read_csv(path)


class TestResume:
    def test_nothing_there(self, tmp_path: Path) -> None:
        assert read_finished(tmp_path, SETTINGS, MACHINE) == []

    @pytest.mark.parametrize(
        ("settings", "machine", "message"),
        [
            (replace(SETTINGS, threads=2), MACHINE, "threads = 1, now it is 2"),
            (replace(SETTINGS, backend="native"), MACHINE, "backend = None, now it is 'native'"),
            (SETTINGS, replace(MACHINE, torch="3.0"), "torch = '2.6', now it is '3.0'"),
        ],
    )
    def test_other_settings_do_not_mix(
        self, settings: AttentionSettings, machine: Machine, message: str, tmp_path: Path
    ) -> None:
        write_results(tmp_path, RESULTS, SETTINGS, MACHINE)
        with pytest.raises(ValueError, match=message):
            read_finished(tmp_path, settings, machine)

    @pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 1}'])
    def test_another_json_is_refused(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "results.json").write_text(text)
        with pytest.raises(ValueError, match="not a benchmark result"):
            read_finished(tmp_path, SETTINGS, MACHINE)


class TestSoftmaxRatio:
    def test_is_that_of_the_faster_one(self) -> None:
        assert result(make_case("both", 64, 50.0), sdpa=2.0, bmm=1.5).softmax_ratio == 1.5
        assert result(make_case("both", 64, 50.0), sdpa=2.0, bmm=2.5).softmax_ratio == 2.0

    def test_one_of_them_is_enough(self) -> None:
        found = result(make_case("both", 64, 50.0))
        alone = replace(found, measurements=found.measurements[:2])
        assert alone.softmax_ratio == 2.0
        assert replace(found, measurements=found.measurements[:1]).softmax_ratio is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"threads": 0}, "threads must be at least 1, got 0"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"seconds": 0.0}, "seconds must be above 0, got 0.0"),
        ({"memory_limit": -1.0}, "memory_limit must be above 0, got -1.0"),
    ],
)
def test_settings_are_checked(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AttentionSettings(**wrong)

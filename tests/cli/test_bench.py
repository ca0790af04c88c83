"""`relakit bench`: options, tables, files, resuming, and loud words about the backend."""

import csv
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from relakit.bench import attention_runs
from relakit.bench.cases import make_case
from relakit.bench.presets import PRESETS, Job
from relakit.cli.main import app
from relakit.ops import backends as attention_backends
from relakit.ops.backends import BACKENDS, NativeBackend

SMALL = (
    "--mode", "forward", "--mode", "decode", "--length", "32", "--zeros", "90", "--contender",
    "sdpa", "--heads", "2", "--batch", "1", "--rounds", "1", "--no-memory", "--backend",
    "reference",
)  # fmt: skip


def bench(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["bench", "attention", *map(str, arguments)])


def rows(directory: Path) -> list[dict[str, str]]:
    with (directory / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True)
class FinishedRun:
    result: Result
    folder: Path

    def copied(self, folder: Path) -> Path:
        """The files of the run, to be changed."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    folder = tmp_path_factory.mktemp("bench") / "new"
    return FinishedRun(bench(*SMALL, "--out", folder), folder)


def test_prints_a_table_per_mode(finished: FinishedRun) -> None:
    result = finished.result
    assert result.exit_code == 0, result.output
    assert "forward, 1 thread" in result.stdout
    assert "decode, 1 thread" in result.stdout
    heading = next(line for line in result.stdout.splitlines() if "GFLOP/s" in line)
    assert heading.split() == ["length", "batch", "zeros", "softmax", "sdpa", "ms", "GFLOP/s"]


def test_writes_everything(finished: FinishedRun) -> None:
    out = finished.folder
    names = {path.name for path in out.iterdir()}
    assert names == {"results.csv", "results.json", "plot.svg", "plot.png"}
    found = [(row["mode"], row["contender"]) for row in rows(out)]
    assert found == [
        ("forward", "rela"), ("forward", "sdpa"), ("decode", "rela"), ("decode", "sdpa"),
    ]  # fmt: skip
    assert rows(out)[0]["backend"] == "reference"
    assert json.loads((out / "results.json").read_text())["settings"]["rounds"] == 1


class TestInterruption:
    def test_finished_cases_are_kept_and_skipped(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        measured = []
        real = attention_runs.run_case

        def run_case(job: Job, settings: Any) -> Any:
            if len(measured) == 1:
                raise KeyboardInterrupt
            measured.append(job.case.mode)
            return real(job, settings)

        monkeypatch.setattr(attention_runs, "run_case", run_case)
        assert bench(*SMALL, "--out", tmp_path).exit_code != 0
        kept = rows(tmp_path)
        assert {row["mode"] for row in kept} == {"forward"}

        monkeypatch.setattr(attention_runs, "run_case", real)
        result = bench(*SMALL, "--out", tmp_path, "--resume")
        assert result.exit_code == 0, result.output
        assert rows(tmp_path)[:2] == kept, "measured a second time"
        assert {row["mode"] for row in rows(tmp_path)} == {"forward", "decode"}

    def test_a_case_with_a_new_contender_is_measured_again(
        self, finished: FinishedRun, tmp_path: Path
    ) -> None:
        finished.copied(tmp_path)
        more = (*SMALL, "--contender", "bmm-softmax", "--out", tmp_path, "--resume")
        assert bench(*more).exit_code == 0
        assert [row["contender"] for row in rows(tmp_path)] == ["rela", "sdpa", "bmm-softmax"] * 2

    def test_other_settings_are_an_error(self, finished: FinishedRun) -> None:
        result = bench(*SMALL, "--out", finished.folder, "--resume", "--seed", "1")
        assert "seed = 0, now it is 1" in str(result.exception)

    def test_results_are_not_overwritten(self, finished: FinishedRun) -> None:
        before = rows(finished.folder)
        result = bench(*SMALL, "--out", finished.folder)
        assert "holds results already" in str(result.exception)
        assert rows(finished.folder) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--quick", "--full"), "exclude each other"),
        (("--preset", "target"), "unknown preset 'target'; choose one of targets, never-slower"),
        (("--preset", "targets", "--length", "64"), "leave out --length"),
        (("--preset", "targets", "--batch", "0"), "leave out --batch"),
        (("--mode", "backward"), "unknown mode 'backward'; choose one of forward"),
        (("--zeros", "most"), "percentage such as 90, or 'demo', got 'most'"),
        (("--length", "0"), "length must be at least 1, got 0"),
        (("--heads", "0"), "heads must be at least 1, got 0"),
        (("--dtype", "float16"), "unknown dtype 'float16'"),
        (("--contender", "softmax"), "unknown contender 'softmax'"),
        (("--backend", "fast"), "unknown backend 'fast'"),
        (("--threads", "0"), "threads must be at least 1, got 0"),
        (("--resume",), "--resume needs --out"),
    ],
)
def test_wrong_options_are_named(arguments: tuple[str, ...], message: str) -> None:
    result = bench(*arguments)
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)


class TestPresets:
    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cases = [make_case(mode, 32, 90.0, heads=2, batch=1) for mode in ("forward", "both")]
        jobs = [Job(case, ("sdpa",)) for case in cases]
        monkeypatch.setitem(PRESETS, "targets", lambda: jobs)
        monkeypatch.setitem(PRESETS, "never-slower", lambda: jobs)

    def test_targets_are_one_table(self) -> None:
        result = bench("--preset", "targets", "--rounds", "1", "--no-memory")
        assert result.exit_code == 0, result.output
        assert "quartiles" in result.stdout
        lines = [line.split() for line in result.stdout.splitlines()]
        assert [line[0] for line in lines if "32" in line] == ["forward", "both"]

    def test_never_slower_prints_the_smallest_ratio(self) -> None:
        result = bench("--preset", "never-slower", "--rounds", "1")
        assert result.exit_code == 0, result.output
        assert "Smallest ratio of SDPA's time to ReLA's: " in result.stdout
        assert "of 2 cases" in result.stdout


class TestBackendWarnings:
    ARGUMENTS = SMALL[:-2]  # no --backend

    def test_no_native_kernels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(NativeBackend, "unavailable", lambda self: ["it was not built"])
        result = bench(*self.ARGUMENTS)
        assert result.exit_code == 0, result.output
        words = " ".join(result.stderr.split())
        assert "The native kernels cannot run here: it was not built." in words
        assert "In 2 of 2 cases ReLA ran on the reference backend" in words

    def test_native_kernels_that_are_not_chosen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(NativeBackend, "unavailable", lambda self: [])
        others = {name: backend for name, backend in BACKENDS.items() if name == "reference"}
        monkeypatch.setattr(attention_backends, "BACKENDS", others)
        words = " ".join(bench(*self.ARGUMENTS).stderr.split())
        assert "The native kernels can run here: --backend native." in words

    def test_the_reference_by_name_is_no_surprise(self, finished: FinishedRun) -> None:
        assert "not made for speed" not in finished.result.stderr


class TestPlot:
    def test_draws_again_from_the_csv(self, finished: FinishedRun, tmp_path: Path) -> None:
        results = finished.folder / "results.csv"
        arguments = ["bench", "plot", results, "--out", tmp_path / "new"]
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code == 0, result.output
        assert {path.name for path in (tmp_path / "new").iterdir()} == {"plot.svg", "plot.png"}

    def test_a_run_without_matplotlib_keeps_its_numbers(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        result = bench(*SMALL, "--out", tmp_path)
        assert result.exit_code == 0, result.output
        assert "No plot: plots need matplotlib" in " ".join(result.stderr.split())
        assert {path.name for path in tmp_path.iterdir()} == {"results.csv", "results.json"}


class TestTuning:
    ARGUMENTS = ("--tune", "--length", "64", "--heads", "1", "--batch", "1", "--rounds", "1")

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("relakit._native")
        monkeypatch.setattr("relakit.bench.tune.PRODUCT_SIZES", (130,))
        monkeypatch.setattr("relakit.bench.tune.NONZEROS", (10, 90))

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_prints_thresholds_and_the_speed_of_products(self, dtype: str) -> None:
        from relakit import _native

        def thresholds() -> dict[str, dict[str, float]]:
            isas = _native.usable_isas()
            return {isa: _native.attention_thresholds(isa, dtype) for isa in isas}

        before = thresholds()
        result = bench(*self.ARGUMENTS, "--dtype", dtype)
        assert result.exit_code == 0, result.output
        assert "130 x 64 x 130" in result.stdout
        assert "Peak of multiplying and adding in registers: " in result.stdout
        lines = {words[0]: words for line in result.stdout.splitlines() if (words := line.split())}
        for name, built_in in before[_native.chosen_isa()].items():
            assert float(lines[name][1]) == pytest.approx(built_in, abs=0.005)
            best = float(lines[name][2])
            if name == "least_to_screen":  # the one length that was tried, or never
                assert best in (64, 128)
            else:
                assert 0 <= best <= 1
        assert thresholds() == before

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (("--quick",), "exclude each other"),
            (("--zeros", "50"), "leave out --zeros"),
            (("--out", "x"), "leave out --out"),
            (("--length", "32"), "--tune takes one --length, got 64, 32"),
        ],
    )
    def test_wrong_options_are_named(self, more: tuple[str, ...], message: str) -> None:
        result = bench(*self.ARGUMENTS, *more)
        assert isinstance(result.exception, ValueError)
        assert message in str(result.exception)

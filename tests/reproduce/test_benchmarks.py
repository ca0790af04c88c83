"""The benchmarks behind Table 2 and Figure 2: when they run, and with what."""

import sys
from pathlib import Path

import pytest

from relakit.reproduce.benchmarks import BENCHMARKS, missing_benchmarks, run_benchmark
from relakit.reproduce.studies import COMPARED, chosen_studies

ROOT = Path(__file__).parents[2]


def test_only_studies_of_speed_need_them(tmp_path: Path) -> None:
    assert missing_benchmarks(chosen_studies(["table1", "table4"]), tmp_path) == []
    assert missing_benchmarks(chosen_studies(["figure2"]), tmp_path) == list(BENCHMARKS)


_HEADER = "system,attention,precision,ratio,ratio_lower,ratio_upper,case,source_length\n"


def test_figure_2_needs_speeds_by_length(tmp_path: Path) -> None:
    decoding = BENCHMARKS[1]
    path = tmp_path / decoding.result
    path.parent.mkdir(parents=True)
    one_by_one = "".join(f"relakit,{name},fp32,1,1,1,batch 1,\n" for name in COMPARED)
    by_length = "".join(f"relakit,{name},fp32,1,1,1,group 1,12\n" for name in COMPARED)
    for rows, is_complete in (
        (one_by_one, False),
        (by_length, False),
        (one_by_one + by_length, True),
    ):
        path.write_text(_HEADER + rows, encoding="utf-8")
        missing = missing_benchmarks(chosen_studies(["figure2"]), tmp_path)
        assert (decoding not in missing) == is_complete


def test_what_was_measured_is_not_missing(tmp_path: Path) -> None:
    training, *decoding = BENCHMARKS
    (tmp_path / training.result).parent.mkdir(parents=True)
    header, kept = _HEADER, ""
    for attention in COMPARED:
        (tmp_path / training.result).write_text(header + kept, encoding="utf-8")
        assert missing_benchmarks(chosen_studies(["table2"]), tmp_path) == [training, *decoding]
        kept += f"relakit,{attention},fp32,1,1,1,training,\n"
    (tmp_path / training.result).write_text(header + kept, encoding="utf-8")
    assert missing_benchmarks(chosen_studies(["table2"]), tmp_path) == decoding


def test_the_scripts_are_in_the_checkout() -> None:
    for benchmark in BENCHMARKS:
        assert (ROOT / benchmark.script).is_file()


def test_elsewhere_they_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    problem = run_benchmark(BENCHMARKS[0], Path("results"))
    assert problem is not None
    assert problem.startswith("needs a checkout of relakit: there is no benchmarks/training.py")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("status", "problem"), [(0, None), (3, "exit status 3 of `")])
def test_run(
    status: int, problem: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    worker = tmp_path / "python"
    worker.write_text(
        f'#!/bin/sh\necho "$@" > arguments\necho $RELAKIT_BACKEND > backend\nexit {status}\n',
        encoding="utf-8",
    )
    worker.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(worker))
    Path("benchmarks").mkdir()
    monkeypatch.delenv("RELAKIT_BACKEND", raising=False)
    for benchmark, backend in zip(BENCHMARKS, ("", "", "reference"), strict=True):
        benchmark.script.touch()
        found = run_benchmark(benchmark, Path("results"))
        assert found == problem or (found or "").startswith(str(problem))
        arguments = Path("arguments").read_text(encoding="utf-8").split()
        assert arguments[0] == str(benchmark.script)
        assert arguments[-1] == str(Path("results") / benchmark.result)
        assert Path(arguments[-1]).parent.is_dir()
        assert Path("backend").read_text(encoding="utf-8").strip() == backend

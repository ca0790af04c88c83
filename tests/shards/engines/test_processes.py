"""Worker processes: the same results as in one, and what happens when they die or fail."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shard_works import expected, shouting, write_files

from relakit.data.parallel_files import read_numbered_pairs
from relakit.shards.cutting import cut_into_shards
from relakit.shards.engines import Engine
from relakit.shards.engines.in_process import InProcess
from relakit.shards.engines.processes import Processes
from relakit.shards.work import WorkDescription


def run(engine: Engine, work: WorkDescription, folder: Path, count: int = 60) -> bytes:
    """What all shards give together; checks what is told on the way."""
    told: list[int] = []
    shards = cut_into_shards(read_numbered_pairs(write_files(folder, count)), 10)
    done = dict(engine.run(work, shards, "line", told.append))
    assert sum(told) == count
    assert sorted(done) == list(range(len(done)))
    return b"".join(done[index].content for index in sorted(done))


@pytest.mark.parametrize("engine", [InProcess(), Processes(1), Processes(2), Processes(3)])
def test_the_same_from_all(engine: Engine, tmp_path: Path) -> None:
    assert run(engine, shouting(), tmp_path) == expected(60)


def test_a_single_shard_needs_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    assert run(Processes(2), shouting(), tmp_path, 9) == expected(9)


@pytest.mark.parametrize("module", ["json", "runpy", "shard_works"])
def test_files_of_the_working_folder_are_not_run(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    (tmp_path / f"{module}.py").write_text("raise SystemExit('it is run')")
    assert run(Processes(2), shouting(), tmp_path) == expected(60)


def test_a_dead_worker_is_replaced(tmp_path: Path) -> None:
    graves = tmp_path / "graves"
    graves.mkdir()
    work = shouting(deadly="s25", graves=[str(graves), 2])
    assert run(Processes(2), work, tmp_path) == expected(60)
    assert len(list(graves.iterdir())) == 2


def test_a_deadly_shard_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"lines 21 to 30: 3 worker processes died .* by SIGKILL"):
        run(Processes(2), shouting(deadly="s25"), tmp_path)


@pytest.mark.parametrize(
    ("settings", "kind", "problem"),
    [
        ({"refused": "s25"}, ValueError, "^line 25 is refused$"),
        ({"broken": "s25"}, RuntimeError, "failed at lines 21 to 30:\nTraceback(.|\n)*a mistake"),
        ({"unbuildable": True}, ValueError, "^the model is broken$"),
    ],
)
def test_errors_come_from_workers(
    settings: dict[str, object], kind: type[Exception], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=problem):
        run(Processes(2), shouting(**settings), tmp_path)


@pytest.mark.parametrize("workers", [0, -1, 100_000])
def test_impossible_numbers(workers: int) -> None:
    with pytest.raises(ValueError, match=re.escape(f"got {workers:,}")):
        Processes(workers)


LONGEST_WAIT = 60  # seconds
PARENT = """
import os, signal, sys
from pathlib import Path
from shard_works import shouting, write_files
from relakit.data.parallel_files import read_numbered_pairs
from relakit.shards.cutting import cut_into_shards
from relakit.shards.engines.processes import Processes
shards = cut_into_shards(read_numbered_pairs(write_files(Path(sys.argv[1]), 60)), 10)
done = Processes(2).run(shouting(), shards, "line", lambda count: None)
next(done)
print(*Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_workers_end_with_their_master(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with output.open("w") as file:  # a pipe would be waited for until the workers have ended
        subprocess.run(
            [sys.executable, "-c", PARENT, str(tmp_path)],
            stdout=file, check=False, timeout=300,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        )  # fmt: skip
    workers = output.read_text().split()
    assert len(workers) == 2
    deadline = time.monotonic() + LONGEST_WAIT
    while left := [pid for pid in workers if is_running(pid)]:
        if time.monotonic() > deadline:
            for pid in left:
                os.kill(int(pid), signal.SIGKILL)
            pytest.fail(f"workers still run {LONGEST_WAIT} s after their master was killed")
        time.sleep(0.05)


def is_running(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"

"""Runs side by side, with a shell script in place of Python."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from relakit.reproduce import jobs
from relakit.reproduce.jobs import Job, run_steps
from relakit.reproduce.one_run import Order
from relakit.reproduce.places import Places
from relakit.reproduce.plan import Step
from relakit.reproduce.runs import Run

# Called as `python -c STARTER relakit.reproduce.one_run ORDER`; the seed decides what it does.
WORKER = r"""#!/bin/sh
folder=$(dirname "$0")
seed=$(printf '%s' "$4" | sed 's/.*"seed": \([0-9]*\).*/\1/')
printf '%s\n' "$4" >> "$folder/orders"
case $seed in
    1) echo 'all is well' ;;
    2) echo 'starting' >&2; echo 'the disk is full' >&2; exit 1 ;;
    3) exit 7 ;;
    4) kill -9 $$ ;;
    5) trap 'echo stop >> "$folder/stops"' TERM
       touch "$folder/ready5"; left=400
       while [ $left -gt 0 ]; do
           sleep 0.05; left=$((left - 1))
           if [ -e "$folder/stops" ] && [ $left -gt 10 ]; then left=10; fi
       done; exit 143 ;;
    6) touch "$folder/ready6"; sleep 20 ;;
    7) echo 'another process is at work' >&2; exit 75 ;;
    8) echo 'terminated by somebody' >&2; exit 143 ;;
esac
"""


class Notes:
    """A view that remembers what it was told."""

    def __init__(self) -> None:
        self.started_runs: list[int] = []
        self.finished_runs: dict[int, str | None] = {}
        self.left_out_runs: list[int] = []
        self.most_at_once = 0

    def started(self, job: Job) -> None:
        self.started_runs.append(job.step.run.seed)

    def finished(self, job: Job, problem: str | None) -> None:
        self.finished_runs[job.step.run.seed] = problem

    def left_out(self, job: Job) -> None:
        self.left_out_runs.append(job.step.run.seed)

    def tick(self, running: Sequence[Job]) -> None:
        self.most_at_once = max(self.most_at_once, len(running))


@pytest.fixture(autouse=True)
def _fake_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = tmp_path / "python"
    worker.write_text(WORKER, encoding="utf-8")
    worker.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(worker))
    monkeypatch.setattr(jobs, "SECONDS_BETWEEN_LOOKS", 0.02)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(data=tmp_path / "data", runs=tmp_path / "runs", results=tmp_path / "results")


def steps(places: Places, *seeds: int) -> list[Step]:
    runs = [Run(scale="tiny", corpus="demo", row="rela-g", seed=seed) for seed in seeds]
    return [Step(run=run, state="to train", folder=places.runs / run.name) for run in runs]


def test_workers_get_their_orders(places: Places, tmp_path: Path) -> None:
    notes = Notes()
    (step,) = steps(places, 1)
    outcome = run_steps([step], places, jobs=2, view=notes)
    assert (outcome.made, outcome.problems, outcome.signal) == (1, {}, None)
    assert notes.finished_runs == {1: None}
    order = Order.read((tmp_path / "orders").read_text(encoding="utf-8"))
    assert order == Order(step.run, places, parent=os.getpid())
    assert step.folder is not None
    assert (step.folder / jobs.OUTPUT).read_text(encoding="utf-8") == "all is well\n"


def test_orders_are_plain_json(places: Places) -> None:
    (step,) = steps(places, 1)
    content = json.loads(Order(step.run, places).write())
    assert content["run"] == {"scale": "tiny", "corpus": "demo", "row": "rela-g", "seed": 1}
    assert content["places"]["data"] == str(places.data)


def test_a_run_that_somebody_else_stopped_is_a_problem(places: Places) -> None:
    notes = Notes()
    outcome = run_steps(steps(places, 8, 1), places, jobs=1, view=notes)
    assert outcome.made == 1
    (problem,) = outcome.problems.values()
    assert "terminated by somebody" in problem
    assert notes.finished_runs == {8: problem, 1: None}


def test_a_run_that_cannot_be_started_does_not_stop_the_others(places: Places) -> None:
    first, second = steps(places, 2, 1)
    assert first.folder is not None
    (first.folder / jobs.OUTPUT).mkdir(parents=True)
    outcome = run_steps([first, second], places, jobs=1, view=Notes())
    assert outcome.made == 1
    assert list(outcome.problems) == [first.run.name]
    assert jobs.OUTPUT in outcome.problems[first.run.name]


def test_a_run_that_goes_wrong_does_not_stop_the_others(places: Places) -> None:
    notes = Notes()
    outcome = run_steps(steps(places, 2, 3, 4, 1), places, jobs=2, view=notes)
    assert notes.started_runs == [2, 3, 4, 1]
    assert notes.most_at_once <= 2
    assert outcome.made == 1
    assert outcome.signal is None
    problems = {name.rpartition("-")[2]: problem for name, problem in outcome.problems.items()}
    assert problems.keys() == {"2", "3", "4"}
    assert problems["2"].startswith("exit status 1: the disk is full (see ")
    assert problems["3"].startswith("exit status 7: nothing was printed (see ")
    assert problems["4"].startswith("killed by signal 9")


def test_a_run_that_is_made_elsewhere_is_no_problem(places: Places) -> None:
    notes = Notes()
    outcome = run_steps(steps(places, 7, 1), places, jobs=1, view=notes)
    assert (outcome.made, outcome.problems) == (1, {})
    assert (notes.left_out_runs, notes.finished_runs) == ([7], {1: None})


def test_no_worker_goes_on_after_an_error(places: Places, tmp_path: Path) -> None:
    class Breaks(Notes):
        def tick(self, running: Sequence[Job]) -> None:
            self.running = list(running)
            if (tmp_path / "ready6").exists():
                raise OSError("the terminal is gone")

    view = Breaks()
    with pytest.raises(OSError, match="the terminal is gone"):
        run_steps(steps(places, 6), places, jobs=1, view=view)
    (job,) = view.running
    assert job.process.wait(timeout=10) == -signal.SIGTERM


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=["TERM", "INT", "HUP"]
)
def test_a_signal_reaches_every_worker_once(
    number: signal.Signals, places: Places, tmp_path: Path
) -> None:
    """One worker takes half a second to stop; another, not yet in training, just ends."""
    notes = Notes()

    def stop() -> None:
        deadline = time.monotonic() + 20
        while not all((tmp_path / f"ready{seed}").exists() for seed in (5, 6)):
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    stopper = threading.Thread(target=stop)
    stopper.start()
    outcome = run_steps(steps(places, 5, 6, 1), places, jobs=2, view=notes)
    stopper.join()
    assert outcome.signal == number
    assert (tmp_path / "stops").read_text(encoding="utf-8") == "stop\n"
    assert notes.started_runs == [5, 6], "nothing new is started"
    assert (outcome.made, outcome.problems, notes.finished_runs) == (0, {}, {})

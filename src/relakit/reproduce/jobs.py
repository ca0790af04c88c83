"""Several runs side by side, each in its own process."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from relakit.files.writing import open_to_append
from relakit.python_process import module_command
from relakit.reproduce.one_run import BUSY, STOPPED, Order
from relakit.reproduce.places import Places
from relakit.reproduce.plan import Step
from relakit.train.interrupts import caught_interrupts

OUTPUT: Final = "output.log"
"""What a run's process prints, in the run's folder."""
SECONDS_BETWEEN_LOOKS: Final = 0.5


@dataclass
class Job:
    """A run whose process was started."""

    step: Step
    process: "subprocess.Popen[bytes]"
    started: float = field(default_factory=time.monotonic)
    is_asked_to_stop: bool = False

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def has_stopped(self) -> bool:
        """Whether its process ended because we asked it to; the run can be resumed."""
        status = self.process.returncode
        # Before and after training nothing catches the signal, and nothing is lost.
        return self.is_asked_to_stop and status in (STOPPED, -signal.SIGTERM)


class JobsView(Protocol):
    """Is told how the runs are going."""

    def started(self, job: Job) -> None:
        """A run's process has started."""

    def finished(self, job: Job, problem: str | None) -> None:
        """The process has ended, with a result file or with a problem."""

    def left_out(self, job: Job) -> None:
        """The process ended at once because another process is making the same run."""

    def tick(self, running: Sequence[Job]) -> None:
        """Half a second has passed."""


@dataclass(frozen=True)
class Outcome:
    """How all runs ended."""

    made: int
    problems: dict[str, str]
    """What went wrong, by the run's name"""
    signal: int | None = None
    """The signal that asked to stop, if any"""


def run_steps(steps: Sequence[Step], places: Places, *, jobs: int, view: JobsView) -> Outcome:
    """Run the open steps, ``jobs`` at a time. SIGINT, SIGTERM or SIGHUP lets all write checkpoints.

    A run that fails does not stop the others. However this ends, no process keeps running.
    """
    waiting = list(steps)
    running: list[Job] = []
    problems: dict[str, str] = {}
    made = 0
    with caught_interrupts() as interrupts:
        try:
            while running or (waiting and interrupts.signal is None):
                while waiting and len(running) < jobs and interrupts.signal is None:
                    step = waiting.pop(0)
                    try:
                        job = _start(step, places)
                    except OSError as error:  # the others may still be possible
                        problems[step.run.name] = str(error)
                        continue
                    running.append(job)
                    view.started(job)
                if interrupts.signal is not None:
                    _stop(running)
                for job in [job for job in running if job.process.poll() is not None]:
                    running.remove(job)
                    if job.has_stopped:
                        continue
                    if job.process.returncode == BUSY:
                        view.left_out(job)
                        continue
                    problem = _problem(job)
                    if problem is None:
                        made += 1
                    else:
                        problems[job.step.run.name] = problem
                    view.finished(job, problem)
                view.tick(running)
                time.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            _stop(running)
    return Outcome(made, problems, interrupts.signal)


def _start(step: Step, places: Places) -> Job:
    assert step.folder is not None
    order = Order(step.run, places, parent=os.getpid())
    command = module_command("relakit.reproduce.one_run", order.write())
    with open_to_append(step.folder / OUTPUT) as output:
        # A process group of its own: Ctrl-C reaches only us, and we pass it on, once.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    return Job(step, process)


def _stop(running: Sequence[Job]) -> None:
    """Ask each process to stop, once: a second signal would end it without a checkpoint."""
    for job in running:
        if not job.is_asked_to_stop and job.process.poll() is None:
            job.is_asked_to_stop = True
            job.process.send_signal(signal.SIGTERM)


def _problem(job: Job) -> str | None:
    """Why a run has no result, if it has none; its last line of output says it best."""
    status = job.process.returncode
    if status == 0:
        return None
    assert job.step.folder is not None
    log = job.step.folder / OUTPUT
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    return f"{how}: {lines[-1] if lines else 'nothing was printed'} (see {log})"

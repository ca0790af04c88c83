"""One run in its own process: train it or finish training, analyze it, write its result file.

``python -m relakit.reproduce.one_run JSON`` is what `jobs` starts.
"""

import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from relakit.bench.machine import describe_machine
from relakit.files.locks import BusyError, locked
from relakit.reproduce.analyses import analyze_run, missing_analyses, weights_digest
from relakit.reproduce.places import Places
from relakit.reproduce.plan import is_current
from relakit.reproduce.records import (
    CurvePoint,
    RunRecord,
    RunScores,
    TrainingRecord,
    read_record,
    record_path,
)
from relakit.reproduce.runs import Run, portable_recipe
from relakit.train.checkpoint import find_checkpoints
from relakit.train.recipe import Recipe
from relakit.train.result import Result
from relakit.train.run import run_training
from relakit.train.run_folder import CHECKPOINTS, LOG

STOPPED: Final = 143
"""Exit status of a run that was asked to stop; it resumes when it is started again."""
BUSY: Final = 75
"""Exit status if another process is making the same run."""
SECONDS_BETWEEN_LOOKS: Final = 0.5


@dataclass(frozen=True)
class Order:
    """What a process is started with."""

    run: Run
    places: Places
    parent: int | None = None
    """The process that starts this one: when the parent is gone, the run stops"""

    def write(self) -> str:
        """The order as the only argument of a command."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def read(cls, text: str) -> "Order":
        content: dict[str, Any] = json.loads(text)
        places = {name: Path(path) for name, path in content["places"].items()}
        return cls(Run(**content["run"]), Places(**places), content["parent"])


def make_run(run: Run, places: Places, console: Console | None = None) -> RunRecord | None:
    """Do what is left of a run, and write its result file.

    Returns:
        The record that was written; None if training was asked to stop.

    Raises:
        BusyError: another process is making the run.
        ValueError: says what could not be analyzed and why; the rest is in the result file.
    """
    recipe = run.recipe(places.data)
    folder = places.folder(run, recipe)
    with locked(folder):
        path = record_path(places.results, run)
        record = read_record(path) if path.exists() else None
        if record is None or not is_current(record, recipe):
            record = _train(run, recipe, folder, places, console)
            if record is None:
                return None
            # Written before the analysis: hours of training must not depend on that.
            record.write(places.results)
        if missing_analyses(record, places):
            for more in analyze_run(record, recipe, folder, places):
                more.write(places.results)
                record = more
    return record


def _train(
    run: Run, recipe: Recipe, folder: Path, places: Places, console: Console | None
) -> RunRecord | None:
    places.prepare(run, recipe)
    begun = bool(find_checkpoints(folder / CHECKPOINTS, interrupted=True))
    result, _ = run_training(
        places.training_recipe(run, recipe), folder, resume=begun, console=console, lock=False
    )
    if result.verdict == "stopped":
        return None
    return RunRecord(
        scale=run.scale,
        corpus=run.corpus,
        row=run.row,
        seed=run.seed,
        recipe=portable_recipe(recipe),
        machine=asdict(describe_machine()),
        training=_training_record(result),
        scores={
            split: RunScores(
                loss=_finite(scores.loss), bleu=scores.bleu, bleu_signature=scores.bleu_signature
            )
            for split, scores in result.scores.items()
        },
        curve=tuple(read_curve(folder / LOG)),
        weights_digest=weights_digest(folder) if result.verdict == "finished" else None,
    )


def _training_record(result: Result) -> TrainingRecord:
    assert result.verdict != "stopped"
    return TrainingRecord(
        verdict=result.verdict,
        reason=result.reason,
        updates=result.updates,
        epochs=result.epochs,
        seconds=result.seconds,
        target_tokens=result.target_tokens,
        parameters=result.parameters,
        averaged_checkpoints=result.settings["averaged_checkpoints"],
        precision=result.settings["precision"],
    )


def read_curve(log: Path) -> Iterator[CurvePoint]:
    """The validations in a run's log."""
    for line in log.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["kind"] == "validation":
            yield CurvePoint(
                update=entry["update"],
                training_loss=_finite(entry["training_loss"]),
                loss=_finite(entry["scores"]["loss"]),
                bleu=entry["scores"]["bleu"],
            )


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _stop_without(parent: int) -> None:
    """Send this process SIGHUP once its parent is gone, however the parent ended."""
    # Nobody else sends this signal in our own session. Under nohup it would be ignored.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os.kill(os.getpid(), signal.SIGHUP)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Exit status: 0 done, 143 stopped, 75 made by another process, 1 with a message."""
    order = Order.read(sys.argv[1])
    if order.parent is not None:
        _stop_without(order.parent)
    try:
        record = make_run(order.run, order.places, Console(stderr=True, width=100))
    except BusyError as error:
        print(error, file=sys.stderr)
        sys.exit(BUSY)
    except (OSError, ValueError) as error:
        sys.exit(f"{order.run.name}: {error}")
    sys.exit(STOPPED if record is None else 0)


if __name__ == "__main__":
    main()

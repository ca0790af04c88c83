"""Runs that somebody stops, in this process."""

import signal
from pathlib import Path

import pytest

from relakit.train.recipe import Recipe
from relakit.train.result import Result
from relakit.train.run import run_training
from relakit.train.run_log import LogFile, UpdateEntry
from relakit.train.trainer import Ending


def run_until(
    recipe: Recipe | None,
    folder: Path,
    update: int,
    *,
    number: signal.Signals = signal.SIGTERM,
    resume: bool = False,
) -> tuple[Result, Ending]:
    """Train until a signal comes during an update."""
    log = LogFile.update

    def interrupted(self: LogFile, entry: UpdateEntry) -> None:
        log(self, entry)
        if entry.update == update:
            signal.raise_signal(number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LogFile, "update", interrupted)
        return run_training(recipe, folder, resume=resume)

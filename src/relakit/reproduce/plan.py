"""Which runs are done, which are missing, and how long they will take."""

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pydantic import ValidationError

from relakit.files.locks import is_locked
from relakit.reproduce.analyses import missing_analyses, why_no_model
from relakit.reproduce.places import Places
from relakit.reproduce.records import RunRecord
from relakit.reproduce.runs import Run, portable_recipe
from relakit.train.recipe import Recipe
from relakit.train.run_folder import LOG

State: TypeAlias = Literal[
    "done", "to analyze", "to resume", "to train", "being made elsewhere", "impossible"
]

_LAST_BYTES: Final = 8192
"""How much of the end of a log is searched for its last update."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A run, and what is still to do for it."""

    run: Run
    state: State
    minutes: float = 0.0
    """Roughly how long the rest takes, on one core"""
    note: str = ""
    """Why it is impossible, or another remark for the plan"""
    recipe: Recipe | None = None
    folder: Path | None = None

    @property
    def is_open(self) -> bool:
        return self.state in ("to analyze", "to resume", "to train")


@dataclass(frozen=True)
class Plan:
    """All steps, in the order in which they will be taken."""

    steps: tuple[Step, ...]

    @property
    def open(self) -> list[Step]:
        return [step for step in self.steps if step.is_open]

    @property
    def core_minutes(self) -> float:
        return sum(step.minutes for step in self.open)


def make_plan(runs: Sequence[Run], places: Places) -> Plan:
    """Compare what is needed with the result files, and with the runs that were started."""
    records = places.records()
    times = TrainingTimes(records.values())
    steps = (_step(run, records.get(run), times, places) for run in runs)
    return Plan(tuple(_left_to_others(step) for step in steps))


def _left_to_others(step: Step) -> Step:
    """The step, left to another process if one is working on it."""
    if step.is_open and step.folder is not None and is_locked(step.folder):
        return replace(step, state="being made elsewhere", note=f"at work in {step.folder}")
    return step


def _step(run: Run, record: RunRecord | None, times: "TrainingTimes", places: Places) -> Step:
    missing = run.about_corpus.why_missing(places.data)
    recipe = run.recipe(places.data)
    is_there = record is not None and is_current(record, recipe)
    if missing is not None:
        # A result that exists cannot be analyzed further, but it exists.
        state: State = "done" if is_there else "impossible"
        return Step(run=run, state=state, note="" if is_there else missing)
    where = places.folder(run, recipe)
    if record is not None and is_there:
        return _analysis_step(run, record, recipe, where, places)
    note = "" if record is None else "its settings have changed since it was made"
    share = share_done(where, recipe)
    return Step(
        run=run,
        state="to resume" if share else "to train",
        minutes=times.minutes(run) * (1 - share),
        note=note,
        recipe=recipe,
        folder=where,
    )


def is_current(record: RunRecord, recipe: Recipe) -> bool:
    """Whether a run was made with this recipe; settings unknown at the time have their defaults."""
    try:
        known = Recipe.model_validate(_with_place(record.recipe, recipe))
    except ValidationError:
        return False  # made with a setting that no longer exists
    return portable_recipe(known) == portable_recipe(recipe)


def _with_place(content: dict[str, object], recipe: Recipe) -> dict[str, object]:
    """The recipe of a result file, plus the data folder that it was written without."""
    data = content["data"]
    assert isinstance(data, dict)
    folder = recipe.data.model_dump(mode="json")["folder"]
    return {**content, "data": {**data, "folder": folder}}


def _analysis_step(
    run: Run, record: RunRecord, recipe: Recipe, folder: Path, places: Places
) -> Step:
    wanted = missing_analyses(record, places)
    if not wanted:
        return Step(run=run, state="done")
    problem = why_no_model(record, folder)
    if problem is not None:
        return Step(run=run, state="done", note=f"{problem} ({', '.join(wanted)})")
    note = f"missing: {', '.join(wanted)}"
    return Step(run=run, state="to analyze", minutes=2.0, note=note, recipe=recipe, folder=folder)


def share_done(folder: Path, recipe: Recipe) -> float:
    """The share of a run that is done, by the last update in its log."""
    entry = latest_update(folder)
    if entry is None:
        return 0.0
    training = recipe.training
    shares = [
        (entry["epoch"] - 1) / training.epochs if training.epochs else 0.0,
        entry["update"] / training.updates if training.updates else 0.0,
    ]
    return min(max(*shares, 0.01), 0.99)


def latest_update(folder: Path) -> dict[str, Any] | None:
    """The last update in the log of a run; None before the first."""
    try:
        with (folder / LOG).open("rb") as log:
            log.seek(max(0, log.seek(0, 2) - _LAST_BYTES))
            lines = log.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            entry: dict[str, Any] = json.loads(line)
        except ValueError:
            continue  # cut off at one end
        if entry["kind"] == "update":
            return entry
    return None


class TrainingTimes:
    """How long runs take, judging by those that were measured."""

    def __init__(self, records: Iterable[RunRecord]) -> None:
        self._seconds: dict[tuple[str, str, str], list[float]] = {}
        for record in records:
            if record.training.verdict == "finished":
                key = (record.scale, record.corpus, record.row)
                self._seconds.setdefault(key, []).append(record.training.seconds)

    def minutes(self, run: Run) -> float:
        """Estimated from other seeds, from other rows, or by the corpus's own estimate."""
        for row in (run.row, "rela-g", "softmax"):
            seconds = self._seconds.get((run.scale, run.corpus, row))
            if seconds:
                factor = 1.0 if row == run.row else run.about_row.minutes_factor
                return statistics.mean(seconds) / 60 * factor
        return run.about_corpus.minutes[run.scale] * run.about_row.minutes_factor

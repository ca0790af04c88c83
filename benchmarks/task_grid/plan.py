"""Which runs there are, and their result files."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from record_files import FORMAT, write_record_file
from relakit.bench.machine import Machine

Task = Literal["language-model", "classifier", "fine-tuning"]
TASKS: Final[tuple[Task, ...]] = get_args(Task)
ATTENTIONS: Final = (
    "softmax",
    "rela-g",
    "rela-i",
    "rela-g-threshold",
    "relu2-length",
    "softpick",
    "sigmoid",
)
"""Attentions of the models from scratch, as named in examples/attention_choices.py."""
BASE: Final = "base"
"""The start of fine-tuning that stands for the training of the softmax model itself."""
FINE_TUNED: Final = (
    ("softmax", "as converted"),
    ("rela-g", "as converted"),
    ("rela-g", "calibrated"),
    ("rela-i", "as converted"),
    ("rela-i", "calibrated"),
)
"""Attentions and starts; softmax, which conversion does not change, shows what further training
gains on its own."""
BRIEFLY_TUNED: Final = (
    ("rela-g", "gains 1, gates half open"),
    ("rela-g", "one gain for each module"),
    ("rela-g", "calibrated, scores times 4"),
    ("rela-g-threshold", "calibrated, threshold at 95%"),
)
"""Other starts, for which the first few updates tell enough."""
STEPS: Final[dict[Task, int]] = {"language-model": 400, "classifier": 1200, "fine-tuning": 1000}
BASE_STEPS: Final = 600
BRIEF_STEPS: Final = 30
SPEED_ROUNDS: Final = 20


@dataclass(frozen=True, kw_only=True)
class TaskRun:
    """One training run."""

    task: Task
    attention: str
    start: str | None = None
    """For fine-tuning: how the converted model starts, or `BASE`"""
    seed: int
    steps: int
    """Number of updates; of the base, if this run trains the base"""
    base_steps: int | None = None
    """For fine-tuning: how many updates the base had before"""

    @property
    def name(self) -> str:
        parts = [self.task, self.attention, self.start or "", f"seed{self.seed}"]
        return "-".join(re.sub("[^a-z0-9]+", "-", part).strip("-") for part in parts if part)


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """What came out of a run, and what it was run with."""

    run: TaskRun
    data: str
    """Where the texts come from"""
    machine: Machine
    cpu_seconds: float
    numbers: dict[str, float]
    """By name: loss, accuracy, zeros, ..."""
    curve: dict[str, float]
    """Held-out loss by number of updates, for fine-tuning"""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which part of the grid to run."""

    tasks: tuple[Task, ...] = TASKS
    attentions: tuple[str, ...] = ATTENTIONS
    seeds: tuple[int, ...] = (1, 2, 3)
    steps: int | None = None
    """Updates to use instead of each task's own, to try things out"""

    def waves(self) -> Iterator[list[TaskRun]]:
        """Runs that can go side by side; one seed's runs come before the next seed's."""
        for seed in self.seeds:
            wave = [
                TaskRun(task=task, attention=attention, seed=seed, steps=self._steps(task))
                for task in self.tasks
                if task != "fine-tuning"
                for attention in self.attentions
            ]
            if "fine-tuning" not in self.tasks:
                yield wave
                continue
            base_steps = self.steps or BASE_STEPS
            base = TaskRun(
                task="fine-tuning", attention="softmax", start=BASE, seed=seed, steps=base_steps
            )
            yield [base, *wave]
            yield [
                TaskRun(
                    task="fine-tuning",
                    attention=attention,
                    start=start,
                    seed=seed,
                    steps=self.steps or steps,
                    base_steps=base_steps,
                )
                for starts, steps in (
                    (FINE_TUNED, STEPS["fine-tuning"]),
                    (BRIEFLY_TUNED, BRIEF_STEPS),
                )
                for attention, start in starts
                if attention in self.attentions
            ]

    def _steps(self, task: Task) -> int:
        return self.steps or STEPS[task]


@dataclass(frozen=True)
class Places:
    """Where texts come from, and where models go."""

    models: Path
    """Folder for the base models of fine-tuning"""
    text: tuple[Path, ...] = ()
    """Texts for the language models; without any, the standard library"""
    labelled: Path | None = None
    """File for the classifier, with lines ``label<TAB>text``"""


def result_path(folder: Path, run: TaskRun) -> Path:
    return folder / f"{run.name}.json"


def is_done(folder: Path, run: TaskRun) -> bool:
    """Whether the run has a result; ValueError if that result is from other settings."""
    path = result_path(folder, run)
    if not path.exists():
        return False
    found = read_result(path).run
    for field, value in asdict(run).items():
        if asdict(found)[field] != value:
            raise ValueError(
                f"{path} was run with {field} = {asdict(found)[field]!r}, now it is {value!r}; "
                "remove the file or choose another --out"
            )
    return True


def write_result(folder: Path, result: TaskResult) -> None:
    write_record_file(result_path(folder, result.run), result)


def read_result(path: Path) -> TaskResult:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("format") != FORMAT:
            raise ValueError(f"it is not of format {FORMAT}")
        run, machine = TaskRun(**content.pop("run")), Machine(**content.pop("machine"))
        return TaskResult(run=run, machine=machine, **content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not the result of a task: {error}") from None


def read_results(folder: Path, names: Sequence[str] = TASKS) -> list[TaskResult]:
    """All results in a folder, sorted by name."""
    paths = sorted(path for name in names for path in folder.glob(f"{name}-*.json"))
    return [read_result(path) for path in paths]

"""How fast the attentions train relative to softmax, measured in turns."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from relakit.bench.machine import describe_machine
from relakit.bench.results import Measured, Run, read_earlier, spread_columns, write_json
from relakit.bench.rounds import CaseRounds, Field, FixedRounds, Turn, take_turns
from task_grid.plan import SPEED_ROUNDS, Places, Task
from task_grid.training_runs import NextLoss, model_and_loss

FILE: Final = "speed.json"
BASELINE: Final = "softmax"
FROM_SCRATCH: Final[tuple[Task, ...]] = ("language-model", "classifier")


@dataclass(frozen=True, kw_only=True)
class SpeedSettings:
    attentions: tuple[str, ...]
    tasks: tuple[Task, ...]
    rounds: int = SPEED_ROUNDS
    updates: int = 4
    """Updates per turn; the model keeps training from turn to turn"""
    seed: int = 1


class Updates:
    """Training updates as a contender."""

    def __init__(self, model: nn.Module, next_loss: NextLoss, updates: int) -> None:
        self._next_loss = next_loss
        self._updates = updates
        # Real updates: the zeros that kernels skip change with the weights.
        self._optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def warm_up(self, case: str) -> None:
        self._update()

    def run(self, case: str, number: int) -> Turn:
        start = time.perf_counter()
        for _ in range(self._updates):
            self._update()
        return Turn(time.perf_counter() - start, {"updates": self._updates})

    def _update(self) -> None:
        self._optimizer.zero_grad()
        torch.autograd.backward(self._next_loss())
        self._optimizer.step()


def measure_speed(
    settings: SpeedSettings, places: Places, folder: Path, tell: Callable[[str], None]
) -> None:
    """Take turns until there are enough rounds; rounds already in the file are kept."""
    torch.set_num_threads(1)
    run = Run(benchmark="tasks", settings=settings, machine=describe_machine())
    path = folder / FILE
    earlier = {case.case: case for case in read_earlier(path, run).rounds}
    cases = [earlier.get(task, CaseRounds(task)) for task in settings.tasks]
    for task, case in zip(settings.tasks, cases, strict=True):
        if len(case.rounds) >= settings.rounds:
            continue
        contenders = Field()
        for attention in settings.attentions:
            model, next_loss = model_and_loss(task, attention, settings.seed, places)
            contenders.contenders[attention] = Updates(model, next_loss, settings.updates)
        take_turns(
            contenders,
            case,
            FixedRounds(settings.rounds),
            after_round=lambda: write_json(path, run, _measured(settings, cases)),
            tell=tell,
        )


def read_speed(folder: Path) -> list[dict[str, Any]]:
    """The rows of the file; none if it does not exist."""
    path = folder / FILE
    if not path.exists():
        return []
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["results"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a measurement of speed: {error}") from None
    return rows


def _measured(settings: SpeedSettings, cases: Sequence[CaseRounds]) -> Measured:
    rows = [
        {
            "task": case.case,
            "attention": attention,
            **spread_columns("ratio", case.ratio(attention, BASELINE, _updates_per_second)),
        }
        for case in cases
        for attention in settings.attentions
    ]
    return Measured(rows=rows, rounds=list(cases))


def _updates_per_second(turn: Turn) -> float:
    return turn.per_second("updates")

"""Training with all processors while another process keeps one of them busy.

Threads that wait for each other by spinning lose much more than the share that the neighbour takes.
Each way of waiting trains in its own process, alone and beside a busy process, in turns.

    python benchmarks/busy_neighbour.py --help
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

import runs
from relakit.amounts import number_with_noun
from relakit.bench.results import Row, spread_columns, write_csv
from relakit.bench.rounds import spread
from relakit.bench.tables import make_table
from relakit.cli.waiting_threads import CHOSEN, WAITING
from runs import CsvFile

app = runs.new_app()

SETTINGS: Final[dict[str, dict[str, str]]] = {
    "as PyTorch": {},
    "as relakit": WAITING,
    "spinning 2,000 times": {"GOMP_SPINCOUNT": "2000"},
    "spinning 1,000 times": {"GOMP_SPINCOUNT": "1000"},
}
BASE: Final = "as PyTorch"
BUSY: Final = "while True: pass"
TOKENS: Final = (40, 16)
"""Sentences per batch and tokens per sentence, as in the demo's updates."""


@dataclass
class Trainer:
    """A process that trains for some seconds when asked to."""

    process: subprocess.Popen[str]

    @classmethod
    def start(cls, settings: dict[str, str], threads: int) -> "Trainer":
        environment = {k: v for k, v in os.environ.items() if k not in CHOSEN}
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).absolute()), "--train", str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, **settings},
        )
        return cls(process)

    def updates_per_second(self, seconds: float) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(seconds, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


@contextmanager
def busy_process() -> Iterator[None]:
    neighbour = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        yield
    finally:
        neighbour.kill()
        neighbour.wait()


@app.command()
def busy_neighbour(
    rounds: Annotated[int, typer.Option(min=1, help="Turns per way of waiting.")] = 7,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of a turn.")] = 3.0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads. \\[default: all processors]")
    ] = None,
    csv: CsvFile = None,
    train: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Train alone and beside a busy process, with threads that wait in different ways."""
    if train is not None:
        _serve(train)
        return
    count = threads or os.cpu_count() or 1
    trainers = {name: Trainer.start(settings, count) for name, settings in SETTINGS.items()}
    alone: dict[str, list[float]] = {name: [] for name in trainers}
    beside: dict[str, list[float]] = {name: [] for name in trainers}
    try:
        for number in range(rounds):
            for found, is_busy in ((alone, False), (beside, True)):
                for name, trainer in trainers.items():
                    if is_busy:
                        with busy_process():
                            found[name].append(trainer.updates_per_second(seconds))
                    else:
                        found[name].append(trainer.updates_per_second(seconds))
            typer.echo(f"round {number + 1} of {rounds}", err=True)
    finally:
        for trainer in trainers.values():
            trainer.process.kill()
    rows = [_row(name, alone, beside) for name in trainers]
    title = f"{number_with_noun(count, 'thread')}, one busy neighbour"
    console = Console(highlight=False)
    headings = ["waiting", "alone / as PyTorch", "alone / beside the neighbour"]
    cells = [[str(row["waiting"]), f"{row['alone']:.2f}", f"{row['slower']:.2f}"] for row in rows]
    console.print(make_table(title, headings, cells, left=headings[:1]))
    if csv is not None:
        write_csv(csv, rows)


def _row(name: str, alone: dict[str, list[float]], beside: dict[str, list[float]]) -> Row:
    def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
        return [one / other for one, other in zip(above, below, strict=True)]

    return {
        "waiting": name,
        **spread_columns("alone", spread(ratios(alone[name], alone[BASE]))),
        **spread_columns("slower", spread(ratios(alone[name], beside[name]))),
        **spread_columns("updates_per_second_alone", spread(alone[name])),
    }


def _serve(threads: int) -> None:
    """For each input line, train for that many seconds and print the updates per second."""
    import torch

    from relakit.model import ModelConfig, Transformer
    from relakit.model.config import sized

    torch.set_num_threads(threads)
    config = ModelConfig.model_validate({**sized("tiny"), "vocabulary": 2500})
    model = Transformer(config)
    optimizer = torch.optim.Adam(model.parameters())
    source, target = (torch.randint(4, 2500, TOKENS) for _ in range(2))

    def update() -> None:
        logits = model(source, target) @ model.embedding.weight.t()
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    update()
    for line in sys.stdin:
        end = time.perf_counter() + float(line)
        count, start = 0, time.perf_counter()
        while time.perf_counter() < end:
            update()
            count += 1
        print(count / (time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    runs.run_app(app)

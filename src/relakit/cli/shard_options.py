"""The options of commands that work on many pairs, shard by shard, and their progress bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from relakit.shards.engines.processes import MOST_BY_DEFAULT, Processes
from relakit.shards.engines.ray import PATIENCE, RayCluster

if TYPE_CHECKING:
    from relakit.shards.engines import Engine

WORK: Final = "The work"
ENGINE: Final = "processes"
ENGINES: Final = (ENGINE, "ray")
STOPPED: Final = 130
"""Exit code after Ctrl-C."""

Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Processes that compute, each with one thread and a model of its own in memory. "
        f"\\[default: one for each processor, up to {MOST_BY_DEFAULT}]",
        rich_help_panel=WORK,
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="|".join(ENGINES),
        help="Where: on this machine, or on a Ray cluster, whose machines must find the model "
        "under the same path.",
        rich_help_panel=WORK,
    ),
]
ShardPairs = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        help="Pairs that are done at a time, and kept if the rest is interrupted.",
        rich_help_panel=WORK,
    ),
]
Restart = Annotated[
    bool,
    typer.Option(
        "--restart",
        help="Forget what an interrupted command has done. Without it, the same command goes on.",
        rich_help_panel=WORK,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="For --engine ray: a cluster that gives nothing back for so long is started again. It "
        f"must be enough for --shard-pairs. \\[default: {PATIENCE:g}]",
        rich_help_panel=WORK,
    ),
]


def chosen_engine(name: str, workers: int | None, timeout: float | None) -> "Engine":
    """Who does the work; ValueError if there is no such engine, or it cannot be had."""
    if name not in ENGINES:
        raise ValueError(f"--engine must be one of {', '.join(ENGINES)}, got {name!r}")
    if name == "ray":
        return RayCluster(workers, patience=PATIENCE if timeout is None else timeout)
    if timeout is not None:
        raise ValueError(f"--timeout {timeout:g} is for --engine ray; leave it out")
    return Processes(workers)


@contextmanager
def pair_bar(console: Console, what: str) -> "Iterator[Callable[[int, int], None]]":
    """A bar with pairs per second on a terminal, nothing elsewhere; gives what to tell it."""
    parts = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    quiet = not console.is_terminal
    with Progress(*parts, console=console, transient=True, disable=quiet) as progress:
        task = progress.add_task("", total=None, speed="")

        def show(done: int, total: int) -> None:
            speed = progress.tasks[0].speed
            text = "" if speed is None else f"{speed:,.0f} pairs/s"
            progress.update(task, completed=done, total=total, speed=text)

        yield show


@contextmanager
def stoppable(output: Path | None) -> Iterator[None]:
    """Say after Ctrl-C how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        if output is not None:
            typer.echo("relakit: stopped; the same command goes on from here", err=True)
        raise typer.Exit(STOPPED) from None

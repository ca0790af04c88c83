"""A progress bar for work that goes through stages, such as preparing or generating a corpus."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def stage_bar(console: Console) -> Iterator["StageBar"]:
    """A bar on a terminal, nothing elsewhere; it disappears at the end."""
    parts = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    quiet = not console.is_terminal
    with Progress(*parts, console=console, transient=True, disable=quiet) as progress:
        yield StageBar(progress)


class StageBar:
    """One bar, which starts over with every stage."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stage = ""
        self._task = progress.add_task("", total=None)

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """``done`` of ``total`` pairs have gone through this stage."""
        if stage != self._stage:
            self._stage = stage
            self._progress.reset(self._task, description=stage)
        self._progress.update(self._task, completed=done)
        # update() takes None to mean "unchanged", so an unknown total is set on the task itself.
        self._progress.tasks[0].total = total

"""Training progress for people: a live bar on a terminal, a line now and then elsewhere."""

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from relakit.train.reporting import UpdateReport, ValidationReport

SECONDS_BETWEEN_LINES = 30.0


class Terminal:
    """Loss, tokens per second, learning rate and the time that is left."""

    def __init__(self, console: Console, *, total_updates: int | None, done: int = 0) -> None:
        self._console = console
        self._total = total_updates
        self._tokens_per_second = 0.0
        self._last_line = time.monotonic()
        self._bar: Progress | None = None
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("epoch {task.fields[epoch]}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("loss {task.fields[loss]:.3f}"),
                TextColumn("{task.fields[speed]:,.0f} tokens/s"),
                TextColumn("lr {task.fields[rate]:.2e}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(elapsed_when_finished=True),
                console=console,
            )
            self._task = self._bar.add_task(
                "training",
                total=total_updates,
                completed=done,
                epoch=1,
                loss=float("nan"),
                speed=0.0,
                rate=0.0,
            )
            self._bar.start()

    def resume(self, update: int) -> None:
        """Move the bar to where the run goes on."""
        if update:
            self._console.print(f"Going on after update {update:,}.")
        if self._bar is not None:
            self._bar.update(self._task, completed=update)

    def update(self, report: UpdateReport) -> None:
        """Show an update."""
        speed = report.target_tokens / report.seconds
        # Batches differ in length, and so in speed: smooth it.
        old = self._tokens_per_second
        self._tokens_per_second = speed if old == 0 else 0.95 * old + 0.05 * speed
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=report.update,
                epoch=report.epoch,
                loss=report.loss,
                speed=self._tokens_per_second,
                rate=report.learning_rate,
            )
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._console.print(self._line(report), highlight=False, soft_wrap=True)

    def _line(self, report: UpdateReport) -> str:
        left = ""
        if self._total is not None:
            seconds = (self._total - report.update) * report.target_tokens / self._tokens_per_second
            left = f"  about {seconds / 60:.0f} min left"
        of = f"/{self._total:,}" if self._total is not None else ""
        return (
            f"update {report.update:,}{of}  epoch {report.epoch}  loss {report.loss:.3f}  "
            f"{self._tokens_per_second:,.0f} tokens/s  lr {report.learning_rate:.2e}{left}"
        )

    def validation(self, report: ValidationReport) -> None:
        """Show a validation."""
        scores = report.scores
        bleu = "" if scores.bleu is None else f"  BLEU {scores.bleu:.1f}"
        self._console.print(
            f"update {report.update:,}: validation loss {scores.loss:.3f}, perplexity "
            f"{scores.perplexity:.1f}{bleu}  (training loss {report.training_loss:.3f})",
            highlight=False,
            soft_wrap=True,
        )

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()

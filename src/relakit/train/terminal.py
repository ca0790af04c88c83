"""The log of a run for people: a live bar on a terminal, a line now and then elsewhere."""

import math
import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from relakit.attention_kinds import AttentionKind
from relakit.closed_gates import too_many_closed
from relakit.model.attention_outputs import ModelOutputs
from relakit.train.run_log import UpdateEntry, ValidationEntry

SECONDS_BETWEEN_LINES = 30.0


class Terminal:
    """Shows loss, tokens per second, learning rate and the time left."""

    def __init__(self, console: Console, *, total_updates: int | None) -> None:
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
                epoch=1,
                loss=float("nan"),
                speed=0.0,
                rate=0.0,
            )
            self._bar.start()

    def resume(self, update: int) -> None:
        """Move the bar to where the run resumes."""
        if update > 0:
            self._console.print(f"Going on after update {update:,}.")
        if self._bar is not None:
            self._bar.update(self._task, completed=max(update, 0))

    def update(self, entry: UpdateEntry) -> None:
        speed = entry.target_tokens / entry.seconds
        # Batches differ in length, and so in speed: smooth it.
        old = self._tokens_per_second
        self._tokens_per_second = speed if old == 0 else 0.95 * old + 0.05 * speed
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=entry.update,
                epoch=entry.epoch,
                loss=entry.loss,
                speed=self._tokens_per_second,
                rate=entry.learning_rate,
            )
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._console.print(self._line(entry), highlight=False, soft_wrap=True)

    def _line(self, entry: UpdateEntry) -> str:
        left = ""
        if self._total is not None:
            seconds = (self._total - entry.update) * entry.target_tokens / self._tokens_per_second
            left = f"  about {seconds / 60:.0f} min left"
        of = f"/{self._total:,}" if self._total is not None else ""
        return (
            f"update {entry.update:,}{of}  epoch {entry.epoch}  loss {entry.loss:.3f}  "
            f"{self._tokens_per_second:,.0f} tokens/s  lr {entry.learning_rate:.2e}{left}"
        )

    def validation(self, entry: ValidationEntry) -> None:
        scores = entry.scores
        bleu = "" if scores.bleu is None else f"  BLEU {scores.bleu:.1f}"
        training_loss = entry.training_loss
        trained = "" if training_loss is None else f"  (training loss {training_loss:.3f})"
        self._console.print(
            f"update {entry.update:,}: validation loss {scores.loss:.3f}, perplexity "
            f"{scores.perplexity:.1f}{bleu}{trained}",
            highlight=False,
            soft_wrap=True,
        )
        if scores.attention_outputs:
            self._show_outputs(scores.attention_outputs)

    def _show_outputs(self, outputs: ModelOutputs) -> None:
        """Print the largest RMS(z) and share of closed gates; in yellow if the share is large."""
        rms, place = _largest({kind: layers.rms for kind, layers in outputs.items()})
        line = f"  RMS(z) up to {rms:.3g} ({place})"
        shares = {kind: layers.closed_gates or () for kind, layers in outputs.items()}
        style = None
        if any(shares.values()):
            share, place = _largest(shares)
            line += f", gates closed up to {share:.1%} ({place})"
            if too_many_closed(share):
                line += ': see "When training goes wrong" in docs/translation.md'
                style = "yellow"
        self._console.print(line, style=style, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Stop the bar where it is, and let others write below it."""
        if self._bar is not None:
            self._bar.stop()


def _largest(values: Mapping[AttentionKind, Sequence[float]]) -> tuple[float, str]:
    """The largest value of all kinds and layers, and where it is; NaN counts as the largest."""
    places = [
        (value, f"{kind} layer {layer}")
        for kind, layers in values.items()
        for layer, value in enumerate(layers, 1)
    ]
    return max(places, key=lambda place: (math.isnan(place[0]), place[0]))

"""The logs of a run in progress: ``log.jsonl`` and TensorBoard; `Terminal` is a third.

No run should die for its log: lines that cannot be written, for example because the disk is full,
wait in memory until a later line can be, with a warning. Only a run that has not begun yet fails.
"""

import importlib.util
import io
import json
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from relakit.files.writing import WriteError, append, write_whole
from relakit.train.result import Scores

Warn = Callable[[str], None]
"""Tells the user what is wrong, while the run continues."""


@dataclass(frozen=True)
class UpdateEntry:
    """An update of the weights."""

    update: int
    epoch: int
    """Counted from 1"""
    loss: float
    """Smoothed, per target token, or per sentence with ``training.loss_mean = "sentences"``"""
    negative_log_likelihood: float
    learning_rate: float
    gradient_norm: float
    target_tokens: int
    seconds: float


@dataclass(frozen=True)
class ValidationEntry:
    """A validation during training."""

    update: int
    training_loss: float | None
    """Mean of the smoothed losses since the previous validation; None before the first update"""
    scores: Scores


class RunLog(Protocol):
    """Where a run writes what happens."""

    def resume(self, update: int) -> None:
        """The run resumes after this update; forget later ones. -1: it starts over."""

    def update(self, entry: UpdateEntry) -> None:
        """Log an update."""

    def validation(self, entry: ValidationEntry) -> None:
        """Log a validation."""

    def close(self) -> None:
        """The run has ended."""


class RunLogs:
    """Several logs as one."""

    def __init__(self, logs: Sequence[RunLog]) -> None:
        self._logs = logs

    def resume(self, update: int) -> None:
        """See `RunLog`, also for the other methods."""
        for log in self._logs:
            log.resume(update)

    def update(self, entry: UpdateEntry) -> None:
        for log in self._logs:
            log.update(entry)

    def validation(self, entry: ValidationEntry) -> None:
        for log in self._logs:
            log.validation(entry)

    def close(self) -> None:
        for log in self._logs:
            log.close()


class GrowingFile:
    """A file to append to. What cannot be written now is kept, and written with what comes next."""

    def __init__(self, path: Path, warn: Warn) -> None:
        self.path = path
        self._warn = warn
        self._waiting = b""
        self._has_warned = False

    def add(self, content: bytes) -> None:
        """Write at the end, now or later."""
        self._waiting += content
        try:
            append(self.path, self._waiting)
        except WriteError as error:
            if not self._has_warned:
                self._warn(f"{error}. The run continues; what it logs is kept in memory meanwhile.")
            self._has_warned = True
            return
        self._waiting = b""
        self._has_warned = False

    def close(self) -> None:
        """Try once more, and report what is lost."""
        if self._waiting:
            self.add(b"")
        if self._waiting:
            self._warn(f"The end of {self.path} is lost: {len(self._waiting):,} bytes.")


class LogFile:
    """One JSON object per line. A resumed run drops the lines after its checkpoint."""

    def __init__(self, path: Path, *, resume: bool, warn: Warn) -> None:
        self._file = GrowingFile(path, warn)
        if not resume:
            write_whole(path, b"")

    def resume(self, update: int) -> None:
        """Drop what came after this update, and a last line that was cut off."""
        path = self._file.path
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        write_whole(path, b"".join(line for line in lines if _is_up_to(line, update)))

    def update(self, entry: UpdateEntry) -> None:
        self._append({"kind": "update", **asdict(entry)})

    def validation(self, entry: ValidationEntry) -> None:
        self._append({"kind": "validation", **asdict(entry)})

    def _append(self, content: dict[str, Any]) -> None:
        self._file.add(f"{json.dumps(content)}\n".encode())

    def close(self) -> None:
        self._file.close()


def _is_up_to(line: bytes, update: int) -> bool:
    """Whether a line is complete, and about this update or an earlier one."""
    try:
        return line.endswith(b"\n") and bool(json.loads(line)["update"] <= update)
    except (ValueError, KeyError, TypeError):
        return False


class TensorBoard:
    """Curves for TensorBoard; needs the extra ``relakit[tensorboard]``.

    Events are written as they come: PyTorch's own writer uses a thread, which dies with a traceback
    when the disk is full.
    """

    def __init__(self, folder: Path, *, warn: Warn) -> None:
        # Each resumed run has its own file; TensorBoard reads them in the order of their names.
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        self._file = GrowingFile(folder / name, warn)
        self._has_begun = False

    @staticmethod
    def is_installed() -> bool:
        """Whether TensorBoard is installed."""
        return importlib.util.find_spec("tensorboard") is not None

    def resume(self, update: int) -> None:
        """Have TensorBoard hide what came after this update."""
        from tensorboard.compat.proto.event_pb2 import SessionLog

        self._add(step=update + 1, session_log=SessionLog(status=SessionLog.START))

    def update(self, entry: UpdateEntry) -> None:
        points = {
            "train/loss": entry.loss,
            "train/negative_log_likelihood": entry.negative_log_likelihood,
            "train/learning_rate": entry.learning_rate,
            "train/gradient_norm": entry.gradient_norm,
            "train/tokens_per_second": entry.target_tokens / entry.seconds,
        }
        self._add_points(points, entry.update)

    def validation(self, entry: ValidationEntry) -> None:
        points = {"valid/loss": entry.scores.loss, "valid/perplexity": entry.scores.perplexity}
        if entry.scores.bleu is not None:
            points["valid/bleu"] = entry.scores.bleu
        for kind, outputs in (entry.scores.attention_outputs or {}).items():
            for layer, rms in enumerate(outputs.rms, 1):
                points[f"rms_z/{kind}_{layer}"] = rms
            for layer, share in enumerate(outputs.closed_gates or (), 1):
                points[f"closed_gates/{kind}_{layer}"] = share
        self._add_points(points, entry.update)

    def _add_points(self, points: dict[str, float], update: int) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in points.items()]
        self._add(step=update, summary=Summary(value=values))

    def _add(self, **fields: Any) -> None:
        if not self._has_begun:  # not before: a run that is refused leaves no file
            self._has_begun = True
            self._add(file_version="brain.Event:2")
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter

        record = io.BytesIO()
        RecordWriter(record).write(Event(wall_time=time.time(), **fields).SerializeToString())
        self._file.add(record.getvalue())

    def close(self) -> None:
        self._file.close()

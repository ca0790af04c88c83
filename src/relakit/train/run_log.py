"""The log of a run while it goes: ``log.jsonl`` and TensorBoard; `Terminal` is a third."""

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from relakit.train.result import Scores
from relakit.writing import write_whole


@dataclass(frozen=True)
class UpdateEntry:
    """An update of the weights."""

    update: int
    epoch: int
    """Counted from 1"""
    loss: float
    """Smoothed, per target token"""
    negative_log_likelihood: float
    learning_rate: float
    gradient_norm: float
    target_tokens: int
    seconds: float


@dataclass(frozen=True)
class ValidationEntry:
    """A validation during training."""

    update: int
    training_loss: float
    """Mean of the smoothed losses since the validation before"""
    scores: Scores


class RunLog(Protocol):
    """Where a run writes what happens."""

    def resume(self, update: int) -> None:
        """The run goes on after this update; forget later ones."""

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
        """See `RunLog`, as for the others."""
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


class LogFile:
    """One JSON object per line. A resumed run drops the lines after its checkpoint."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        if not resume:
            write_whole(path, b"")

    def resume(self, update: int) -> None:
        """Drop what came after this update, and a last line that was cut off."""
        kept = []
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        for line in lines:
            try:
                content = json.loads(line)
            except json.JSONDecodeError:
                continue
            if content["update"] <= update:
                kept.append(line + "\n")
        write_whole(self._path, "".join(kept).encode())

    def update(self, entry: UpdateEntry) -> None:
        self._append({"kind": "update", **asdict(entry)})

    def validation(self, entry: ValidationEntry) -> None:
        self._append({"kind": "validation", **asdict(entry)})

    def _append(self, content: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(content) + "\n")

    def close(self) -> None:
        """Nothing to do: every line is written as it comes."""


class TensorBoard:
    """Curves for TensorBoard; needs the extra ``relakit[tensorboard]``."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._folder = folder
        self._make = SummaryWriter
        self._writer = SummaryWriter(str(folder))

    @staticmethod
    def is_installed() -> bool:
        """Whether TensorBoard is there to write for."""
        return importlib.util.find_spec("tensorboard") is not None

    def resume(self, update: int) -> None:
        """Have TensorBoard hide what came after this update."""
        self._writer.close()
        self._writer = self._make(str(self._folder), purge_step=update + 1)

    def update(self, entry: UpdateEntry) -> None:
        points = {
            "train/loss": entry.loss,
            "train/negative_log_likelihood": entry.negative_log_likelihood,
            "train/learning_rate": entry.learning_rate,
            "train/gradient_norm": entry.gradient_norm,
            "train/tokens_per_second": entry.target_tokens / entry.seconds,
        }
        for name, value in points.items():
            self._writer.add_scalar(name, value, entry.update)

    def validation(self, entry: ValidationEntry) -> None:
        points = {"valid/loss": entry.scores.loss, "valid/perplexity": entry.scores.perplexity}
        if entry.scores.bleu is not None:
            points["valid/bleu"] = entry.scores.bleu
        for kind, outputs in (entry.scores.attention_outputs or {}).items():
            for layer, rms in enumerate(outputs.rms, 1):
                points[f"rms_z/{kind}_{layer}"] = rms
            for layer, share in enumerate(outputs.closed_gates or (), 1):
                points[f"closed_gates/{kind}_{layer}"] = share
        for name, value in points.items():
            self._writer.add_scalar(name, value, entry.update)

    def close(self) -> None:
        self._writer.close()

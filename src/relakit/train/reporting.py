"""What a run tells while it goes: to the terminal, to ``log.jsonl`` and to TensorBoard."""

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from relakit.train.result import Scores
from relakit.writing import write_whole


@dataclass(frozen=True)
class UpdateReport:
    """One update of the weights."""

    update: int
    epoch: int
    """From 1 on"""
    loss: float
    """Smoothed, per target token"""
    negative_log_likelihood: float
    learning_rate: float
    gradient_norm: float
    target_tokens: int
    seconds: float


@dataclass(frozen=True)
class ValidationReport:
    """A validation on the way."""

    update: int
    training_loss: float
    """Mean of the smoothed losses since the last validation"""
    scores: Scores


class Reporter(Protocol):
    """Who wants to know."""

    def resume(self, update: int) -> None:
        """The run goes on after this update; what is known of later ones is void."""

    def update(self, report: UpdateReport) -> None:
        """An update was made."""

    def validation(self, report: ValidationReport) -> None:
        """A validation was made."""

    def close(self) -> None:
        """The run ended."""


class Reporters:
    """Several reporters as one."""

    def __init__(self, reporters: Sequence[Reporter]) -> None:
        self._reporters = reporters

    def resume(self, update: int) -> None:
        """Hand on."""
        for reporter in self._reporters:
            reporter.resume(update)

    def update(self, report: UpdateReport) -> None:
        """Hand on."""
        for reporter in self._reporters:
            reporter.update(report)

    def validation(self, report: ValidationReport) -> None:
        """Hand on."""
        for reporter in self._reporters:
            reporter.validation(report)

    def close(self) -> None:
        """Hand on."""
        for reporter in self._reporters:
            reporter.close()


class LogFile:
    """One JSON object per line. A resumed run drops the lines that its checkpoint does not know."""

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
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            if entry["update"] <= update:
                kept.append(line + "\n")
        write_whole(self._path, "".join(kept).encode())

    def update(self, report: UpdateReport) -> None:
        """Write a line."""
        self._append({"kind": "update", **asdict(report)})

    def validation(self, report: ValidationReport) -> None:
        """Write a line."""
        self._append({"kind": "validation", **asdict(report)})

    def _append(self, entry: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def close(self) -> None:
        """Every line is written when it comes."""


class TensorBoard:
    """Curves for TensorBoard; needs the extra ``relakit[tensorboard]``."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._folder = folder
        self._make = SummaryWriter
        self._writer = SummaryWriter(str(folder))

    @staticmethod
    def is_installed() -> bool:
        """Whether there is a TensorBoard to write for."""
        return importlib.util.find_spec("tensorboard") is not None

    def resume(self, update: int) -> None:
        """Have TensorBoard hide what came after this update."""
        self._writer.close()
        self._writer = self._make(str(self._folder), purge_step=update + 1)

    def update(self, report: UpdateReport) -> None:
        """Add points to the curves."""
        points = {
            "train/loss": report.loss,
            "train/negative_log_likelihood": report.negative_log_likelihood,
            "train/learning_rate": report.learning_rate,
            "train/gradient_norm": report.gradient_norm,
            "train/tokens_per_second": report.target_tokens / report.seconds,
        }
        for name, value in points.items():
            self._writer.add_scalar(name, value, report.update)

    def validation(self, report: ValidationReport) -> None:
        """Add points to the curves."""
        points = {"valid/loss": report.scores.loss, "valid/perplexity": report.scores.perplexity}
        if report.scores.bleu is not None:
            points["valid/bleu"] = report.scores.bleu
        for name, value in points.items():
            self._writer.add_scalar(name, value, report.update)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

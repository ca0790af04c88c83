"""How a run ended: its verdict and its scores, as in ``result.json``."""

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from relakit.files.writing import write_whole

if TYPE_CHECKING:
    from relakit.model.attention_outputs import ModelOutputs

Verdict = Literal["finished", "stopped", "failed"]


def read_verdict(path: Path) -> Verdict | None:
    """How the run with this ``result.json`` last ended; None if it has not, or cannot be told."""
    try:
        verdict = json.loads(path.read_bytes())["verdict"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return verdict if verdict in get_args(Verdict) else None


@dataclass(frozen=True)
class Scores:
    """What was measured on one split."""

    loss: float
    """Negative log-likelihood per target token, in nats, without label smoothing"""
    bleu: float | None = None
    bleu_signature: str | None = None
    attention_outputs: "ModelOutputs | None" = None
    """How large attention outputs are before the norm, by kind and layer; None in all processes but
    the main one"""

    @property
    def perplexity(self) -> float:
        """exp(loss)"""
        return math.exp(min(self.loss, 700.0))


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    verdict: Verdict
    reason: str
    """Why it ended, in words"""
    updates: int
    epochs: float
    seconds: float
    """Training time, without validation and checkpoints"""
    target_tokens: int
    parameters: int
    scores: dict[str, Scores] = field(default_factory=dict)
    """The final model's scores by split"""
    settings: dict[str, Any] = field(default_factory=dict)
    """The recipe, versions, and what the machine decided"""

    @property
    def tokens_per_second(self) -> float:
        """Target tokens per second of training."""
        return self.target_tokens / self.seconds if self.seconds else 0.0

    def write(self, path: Path) -> None:
        """Write as JSON, whole or not at all."""
        content = {**asdict(self), "tokens_per_second": self.tokens_per_second}
        text = json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"
        write_whole(path, text.encode())

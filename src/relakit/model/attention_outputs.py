"""How large attention outputs are before the norm, and how many gates are closed, by layer.

In equation 5, ``sigmoid(w * z) * z / RMS(z) * g``, the norm hides how large ``z`` is, but the gate
sees it. If z grows during training, gates close: the sigmoid becomes 0, and so does its gradient.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from relakit.attention_kinds import ATTENTION_KINDS, AttentionKind
from relakit.closed_gates import CLOSED_BELOW
from relakit.data.tokenizer import PAD
from relakit.model.transformer import Attention, Transformer
from relakit.ops.precision import wide


@dataclass(frozen=True)
class OutputSums:
    """Sums over the outputs of one layer, from which `rms` and `closed_share` follow."""

    squares: float = 0.0
    """Sum of the squares of all values of z"""
    values: int = 0
    """How many values there are: positions times features"""
    closed: int | None = None
    """Closed gates; None without gates. Every value has its own gate."""

    def __add__(self, other: "OutputSums") -> "OutputSums":
        closed = None
        if self.closed is not None or other.closed is not None:
            closed = (self.closed or 0) + (other.closed or 0)
        return OutputSums(self.squares + other.squares, self.values + other.values, closed)

    @property
    def rms(self) -> float:
        """The root mean square of z; NaN if there are no values."""
        return math.sqrt(self.squares / self.values) if self.values else math.nan

    @property
    def closed_share(self) -> float | None:
        """The share of closed gates; None without gates."""
        if self.closed is None:
            return None
        return self.closed / self.values if self.values else math.nan


@dataclass(frozen=True)
class LayerOutputs:
    """The outputs of one kind of attention, layer by layer."""

    rms: tuple[float, ...]
    """Root mean square of z; infinite or NaN if z is"""
    closed_gates: tuple[float, ...] | None
    """Share of gates below `CLOSED_BELOW`; None without gates"""

    @classmethod
    def from_sums(cls, layers: Sequence[OutputSums]) -> "LayerOutputs":
        """The numbers that follow from the sums of each layer."""
        closed = tuple(sums.closed_share for sums in layers if sums.closed_share is not None)
        return cls(tuple(sums.rms for sums in layers), closed or None)


ModelOutputs = Mapping[AttentionKind, LayerOutputs]


def output_sums(z: Tensor, gate: Tensor | None, is_word: Tensor) -> OutputSums:
    """Measure the outputs of one attention.

    Args:
        z: ``[batch, positions, features]``; features may be two dimensions, by head and within it.
        gate: the gate's weights ``[features]``, or None.
        is_word: ``[batch, positions]``: False for padding, which does not count.
    """
    # This looks roundabout, but takes a third of the time on a CPU: rows by number instead of by
    # mask, and a comparison that gives floats. The sigmoid of x is below p where x is below
    # log(p / (1 - p)).
    words = is_word.flatten().nonzero().flatten()
    rows = wide(z.flatten(2).flatten(0, 1).index_select(0, words))  # [words, features]
    squares = _sum(torch.linalg.vector_norm(rows, dim=-1), power=2)
    closed = None
    if gate is not None:
        limit = math.log(CLOSED_BELOW / (1 - CLOSED_BELOW))
        closed = int(_sum((rows * gate).lt_(limit).sum(-1)))
    return OutputSums(squares, rows.numel(), closed)


def _sum(numbers: Tensor, power: int = 1) -> float:
    """Sum in float64: in float32 a sum over many words loses digits, and squares may overflow."""
    return float((numbers.cpu().double() ** power).sum())


class OutputMeter:
    """Adds up the outputs of all attentions of a model while `watch` is active."""

    def __init__(
        self, model: Transformer, kinds: Sequence[AttentionKind] = ATTENTION_KINDS
    ) -> None:
        self._attentions: dict[AttentionKind, list[Attention]] = {kind: [] for kind in kinds}
        for module in model.modules():  # in the order of the layers
            if isinstance(module, Attention) and module.kind in kinds:
                self._attentions[module.kind].append(module)
        self.sums = {kind: [OutputSums()] * len(self._attentions[kind]) for kind in kinds}
        """One for each layer"""

    def outputs(self) -> ModelOutputs:
        """The numbers so far."""
        return {kind: LayerOutputs.from_sums(layers) for kind, layers in self.sums.items()}

    @contextmanager
    def watch(self, source: Tensor, target: Tensor) -> Iterator[None]:
        """Count what the model computes in the block, which reads one batch.

        In it, attention and norm run one after the other instead of in one step.

        Args:
            source: token ids ``[batch, source]`` that the encoder reads in the block.
            target: token ids ``[batch, target]`` that the decoder reads.
        """
        with ExitStack() as stack:
            for kind, attentions in self._attentions.items():
                is_word = (source if kind == "encoder" else target) != PAD
                for layer, attention in enumerate(attentions):
                    handle = self._hook(attention, layer, is_word)
                    stack.callback(handle.remove)
            yield

    def _hook(
        self, attention: Attention, layer: int, is_word: Tensor
    ) -> torch.utils.hooks.RemovableHandle:
        sums = self.sums[attention.kind]
        gate: Tensor | None = getattr(attention.norm, "gate", None)

        def add(reader: nn.Module, args: tuple[Any, ...]) -> None:
            with torch.no_grad():
                sums[layer] += output_sums(args[0], gate, is_word)

        # The first to read z: the norm, or without one the output projection.
        reader = attention.output if attention.norm is None else attention.norm
        return reader.register_forward_pre_hook(add)

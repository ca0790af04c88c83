"""How well a model predicts given targets: the cross-entropy of each, under forced decoding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from relakit.data.tokenizer import END
from relakit.model import Transformer

LOGITS: Final = 1 << 22
"""The most logits computed at once (16 MiB), but always those of at least `FEWEST_ROWS` rows."""
FEWEST_ROWS: Final = 8
"""Products with a single row are computed differently, which changes their last digits."""


@dataclass(frozen=True)
class TokenLosses:
    """A model's view of every token of a target and of its end, in nats; float64, on the CPU."""

    losses: Tensor
    """Cross-entropy, without smoothing"""
    margins: Tensor
    """How much likelier the model found its own first choice; 0 if it is that choice"""


def sentence_losses(model: Transformer, states: Tensor, targets: Sequence[Sequence[int]]) -> Tensor:
    """Cross-entropy in nats, without smoothing: ``[sentences]``, float64, on the CPU.

    Summed over a target's tokens and the end of the sentence; see `token_losses`.
    """
    found = token_losses(model, states, targets)
    return torch.stack([sentence.losses.sum() for sentence in found])


def token_losses(
    model: Transformer, states: Tensor, targets: Sequence[Sequence[int]]
) -> list[TokenLosses]:
    """The losses of every token and of the end of each sentence.

    Args:
        model: computes the logits.
        states: the decoder's states, ``[sentences, padded size, dim]``, where the padded size is a
            multiple of `FEWEST_ROWS`. Losses of padding are computed but not used, so that a
            sentence's losses do not depend on the other sentences.
        targets: token ids, without special ones.
    """
    sizes = [len(target) + 1 for target in targets]
    ids = torch.full(states.shape[:2], END)
    for row, target in zip(ids, targets, strict=True):
        row[: len(target)] = torch.tensor(target, dtype=ids.dtype)
    rows = max(FEWEST_ROWS, LOGITS // model.config.vocabulary // FEWEST_ROWS * FEWEST_ROWS)
    found = [
        _losses(model.logits(some_states).float(), some_ids)
        for some_states, some_ids in zip(
            torch.split(states.flatten(0, 1), rows),
            torch.split(ids.flatten().to(states.device), rows),
            strict=True,
        )
    ]
    losses, margins = (
        torch.cat(part).double().cpu().view(ids.shape) for part in zip(*found, strict=True)
    )
    return [TokenLosses(losses[row, :size], margins[row, :size]) for row, size in enumerate(sizes)]


def _losses(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    of_ids = logits.gather(1, ids[:, None]).squeeze(1)
    return F.cross_entropy(logits, ids, reduction="none"), logits.amax(1) - of_ids

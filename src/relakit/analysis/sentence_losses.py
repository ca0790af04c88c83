"""How well a model predicts given targets: the cross-entropy of each, under forced decoding."""

from collections.abc import Sequence
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


def sentence_losses(model: Transformer, states: Tensor, targets: Sequence[Sequence[int]]) -> Tensor:
    """Cross-entropy in nats, without smoothing: ``[sentences]``, float64, on the CPU.

    Summed over a target's tokens and the end of the sentence; see `token_losses`.
    """
    losses = token_losses(model, states, targets)
    return torch.stack([sentence.sum() for sentence in losses])


def token_losses(
    model: Transformer, states: Tensor, targets: Sequence[Sequence[int]]
) -> list[Tensor]:
    """Cross-entropy in nats of every token and of the end of each sentence, float64, on the CPU.

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
    losses = [
        F.cross_entropy(model.logits(some_states).float(), some_ids, reduction="none")
        for some_states, some_ids in zip(
            torch.split(states.flatten(0, 1), rows),
            torch.split(ids.flatten().to(states.device), rows),
            strict=True,
        )
    ]
    by_sentence = torch.cat(losses).double().cpu().view(ids.shape)
    return [row[:size] for row, size in zip(by_sentence, sizes, strict=True)]

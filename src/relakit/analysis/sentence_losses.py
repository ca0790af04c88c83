"""How well a model predicts given targets: the cross-entropy of each, under forced decoding."""

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from relakit.data.tokenizer import END
from relakit.model import Transformer

LOGITS: Final = 1 << 22
"""Most logits that are computed at once (16 MiB), but those of one token at least."""


def sentence_losses(model: Transformer, states: Tensor, targets: Sequence[Sequence[int]]) -> Tensor:
    """Cross-entropy in nats, without smoothing: ``[sentences]``, float64, on the CPU.

    The sum over a target's tokens and the end of the sentence.

    Args:
        model: gives the logits.
        states: the decoder's, ``[sentences, longest, dim]``; those of padding are not used.
        targets: token ids, without special ones.
    """
    sizes = [len(target) + 1 for target in targets]
    device = states.device
    ids = torch.tensor([token for target in targets for token in (*target, END)], device=device)
    real = torch.arange(states.size(1), device=device) < torch.tensor(sizes, device=device)[:, None]
    rows = max(1, LOGITS // model.config.vocabulary)
    losses = [
        F.cross_entropy(model.logits(some_states).float(), some_ids, reduction="none")
        for some_states, some_ids in zip(
            torch.split(states[real], rows), torch.split(ids, rows), strict=True
        )
    ]
    tokens = torch.cat(losses).double().cpu()
    return torch.stack([sentence.sum() for sentence in torch.split(tokens, sizes)])

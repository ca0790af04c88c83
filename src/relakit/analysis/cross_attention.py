"""The cross-attention of a model that is made to write given translations."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import torch
from relakit.analysis.alignment import READINGS, Reading
from relakit.analysis.attention_pass import AttentionBatch, attention_batches
from relakit.analysis.pair_batches import BATCH_TOKENS, WINDOW, TokenPair
from relakit.model import Transformer


@dataclass(frozen=True)
class CrossAttention:
    """The cross-attention weights of one sentence pair, in all layers and heads."""

    index: int
    """Which pair it is, from 0."""
    weights: npt.NDArray[np.float32]
    """``[layers, heads, target tokens + 1, source tokens + 1]``. Row t is of the step that predicts
    target token t, the last one of the step that predicts the end of the sentence. The last column
    is the source's end-of-sentence token."""

    def read(self, reading: Reading) -> npt.NDArray[np.float32]:
        """``[layers, heads, target tokens, source tokens + 1]``: a row for each target token."""
        if reading not in READINGS:
            raise ValueError(f"unknown reading {reading!r}; choose one of {', '.join(READINGS)}")
        return self.weights[:, :, :-1] if reading == "normal" else self.weights[:, :, 1:]


def capture_cross_attention(
    model: Transformer,
    pairs: Iterable[TokenPair],
    *,
    batch_tokens: int = BATCH_TOKENS,
    window: int = WINDOW,
) -> Iterator[CrossAttention]:
    """Force-decode sentence pairs and give the cross-attention of each, without dropout.

    Not in the order of the pairs: they are sorted by length within a window, so that a batch has
    little padding. Memory depends on the window and on the longest pair, not on how many there are.

    Args:
        model: on whatever device; its mode (training or not) is as before after every batch.
        pairs: token ids; read window by window.
        batch_tokens: padded tokens, of the longer side, that are computed at once.
        window: pairs that are read before they are computed.
    """
    batches = attention_batches(
        model, pairs, kinds=("cross",), batch_tokens=batch_tokens, window=window
    )
    # A copy, so that keeping one pair does not keep its batch.
    return (
        CrossAttention(attention.index, attention.weights.copy())
        for batch in batches
        for attention in cross_attention_of(batch)
    )


def cross_attention_of(batch: AttentionBatch) -> Iterator[CrossAttention]:
    """The cross-attention of each pair of a batch, as views of the batch's."""
    weights = torch.stack(list(batch.layers["cross"]), dim=1).numpy()
    sizes = zip(batch.target_sizes.tolist(), batch.source_sizes.tolist(), strict=True)
    for index, matrices, (targets, sources) in zip(batch.indices, weights, sizes, strict=True):
        yield CrossAttention(index, matrices[:, :, :targets, :sources])

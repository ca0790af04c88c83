"""The cross-attention of a model that is made to write given translations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from relakit.analysis.alignment import READINGS, Reading
from relakit.attention import capture
from relakit.data.batches import pad_batch
from relakit.data.tokenizer import BEGIN, END
from relakit.model import Transformer

TokenPair: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Ids of source and target, without special tokens."""

BATCH_TOKENS: Final = 4096
"""Padded tokens, of the longer side, that are computed at once, unless told otherwise."""
BATCH_WEIGHTS: Final = 1 << 24
"""Most cross-attention weights that are held at once (64 MiB), unless one pair has more."""
WINDOW: Final = 2000
"""Pairs that are read before they are computed, so that batches have pairs of one length."""


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
    for name, value in (("batch_tokens", batch_tokens), ("window", window)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    return _windows(model, iter(pairs), batch_tokens, window)


def _windows(
    model: Transformer, pairs: Iterator[TokenPair], batch_tokens: int, window: int
) -> Iterator[CrossAttention]:
    matrices = model.config.decoder_layers * model.config.heads
    start = 0
    while read := list(islice(pairs, window)):
        sizes = [(len(source) + 1, len(target) + 1) for source, target in read]
        for indices in plan_pair_batches(sizes, batch_tokens, BATCH_WEIGHTS // matrices):
            weights = _batch_weights(model, [read[i] for i in indices])
            for index, matrix in zip(indices, weights, strict=True):
                sources, targets = sizes[index]
                # A copy, so that keeping one pair does not keep its batch.
                yield CrossAttention(start + index, matrix[:, :, :targets, :sources].copy())
        start += len(read)


def plan_pair_batches(
    sizes: Sequence[tuple[int, int]], batch_tokens: int, matrix_entries: int
) -> list[list[int]]:
    """Indices of pairs to compute together, the longest first.

    A batch, filled up, has at most ``batch_tokens`` tokens on either side, and at most
    ``matrix_entries`` entries in source by target matrices; but one pair at least.

    Args:
        sizes: tokens of source and target, special ones included.
        batch_tokens: see above.
        matrix_entries: see above.
    """
    batches: list[list[int]] = []
    sources = targets = 0
    for index in sorted(range(len(sizes)), key=lambda i: (-sizes[i][1], -sizes[i][0])):
        wider = max(sources, sizes[index][0]), max(targets, sizes[index][1])
        count = len(batches[-1]) + 1 if batches else 0
        too_large = (
            count * max(wider) > batch_tokens or count * wider[0] * wider[1] > matrix_entries
        )
        if not batches or too_large:
            batches.append([])
            wider = sizes[index]
        sources, targets = wider
        batches[-1].append(index)
    return batches


def _batch_weights(model: Transformer, pairs: Sequence[TokenPair]) -> npt.NDArray[np.float32]:
    """``[pairs, layers, heads, targets, sources]``, filled up on the right."""
    device = model.embedding.weight.device
    source = torch.from_numpy(pad_batch([s for s, _ in pairs], end=END)).to(device)
    target = torch.from_numpy(pad_batch([t for _, t in pairs], begin=BEGIN)).to(device)
    # They grow here: a tensor made in inference mode could not take part in training later.
    model.embedding.position_vectors(max(source.size(1), target.size(1)))
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode(), capture(model, "decoder.layers.*.cross_attention") as records:
            model(source, target)
            layers = [
                records[f"decoder.layers.{layer}.cross_attention"][0].weights.float()
                for layer in range(model.config.decoder_layers)
            ]
            weights = torch.stack(layers, dim=1).cpu()
    finally:
        model.train(was_training)
    return weights.numpy()

"""What an alignment layer reads: states of a frozen translator that force-decodes targets."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from relakit.analysis.forced_states import ForcedStates
from relakit.analysis.pair_batches import (
    WINDOW,
    TokenPair,
    pad_sentences,
    plan_pair_batches,
    read_windows,
)
from relakit.analysis.settings import BATCH_TOKENS
from relakit.data.tokenizer import BEGIN, END
from relakit.model import Transformer
from relakit.model.evaluation import inference

QUERY_PARTS: Final = 3
"""How many parts make up a target token's input, each as wide as the model."""
KEY_PARTS: Final = 2
_BATCH_SCORES: Final = 1 << 22
"""Most scores that are computed at once (16 MiB), unless one pair has more."""


@dataclass(frozen=True)
class StateBatch:
    """The states of sentence pairs that were computed together, each part normalised."""

    indices: Sequence[int]
    """Which pairs these are, from 0"""
    sizes: Sequence[tuple[int, int]]
    """Source and target tokens of each pair, without special ones"""
    target: Tensor
    """``[pairs, target positions, QUERY_PARTS * dim]``. Row t is for target token t: the last state
    of the step that predicts it, the state below the last layer in the next step, which has read
    it, and its embedding. Rows of padding may have any value."""
    source: Tensor
    """``[pairs, source positions, KEY_PARTS * dim]``: the encoder's state of each source token, and
    its embedding"""

    @classmethod
    def of(
        cls, states: ForcedStates, indices: Sequence[int], sizes: Sequence[tuple[int, int]]
    ) -> "StateBatch":
        """Take what an alignment layer reads from the states of a model."""
        read = (_next(_normal(part)) for part in (states.below, states.target_embedded))
        return cls(
            indices=indices,
            sizes=sizes,
            target=torch.cat([_normal(states.last), *read], dim=-1),
            source=torch.cat([_normal(states.memory), _normal(states.source_embedded)], dim=-1),
        )


def state_batches(
    model: Transformer,
    pairs: Iterable[TokenPair],
    *,
    batch_tokens: int = BATCH_TOKENS,
    window: int = WINDOW,
    shuffle: np.random.Generator | None = None,
) -> Iterator[StateBatch]:
    """Force-decode sentence pairs without dropout and gradients, and yield their states.

    Memory depends on the window and on the longest pair, not on how many pairs there are, and the
    states of a pair do not depend on the pairs beside it (`padded_size`).

    Args:
        model: on any device; after every batch it is in the same mode (training or not) as before.
        pairs: token ids; read window by window.
        batch_tokens: how many padded tokens, of the longer side, are computed at once.
        window: how many pairs are read before they are computed.
        shuffle: puts the batches of a window into a random order; None: the longest first.
    """
    start = 0
    for read in read_windows(pairs, window):
        sizes = [(len(source) + 1, len(target) + 1) for source, target in read]
        plan = plan_pair_batches(sizes, batch_tokens, _BATCH_SCORES)
        order = np.arange(len(plan)) if shuffle is None else shuffle.permutation(len(plan))
        for number in order:
            yield _states(model, read, plan[number], start)
        start += len(read)


def _states(
    model: Transformer, pairs: Sequence[TokenPair], batch: Sequence[int], start: int
) -> StateBatch:
    device = model.embedding.weight.device
    chosen = [pairs[index] for index in batch]
    source = torch.from_numpy(pad_sentences([one for one, _ in chosen], end=END)).to(device)
    target = torch.from_numpy(pad_sentences([two for _, two in chosen], begin=BEGIN)).to(device)
    with inference(model, positions=max(source.size(1), target.size(1))):
        states = ForcedStates.of(model, source, target, model.encode(source))
    # Outside the block, as what is made in inference mode cannot be trained on.
    return StateBatch.of(
        states,
        indices=[start + index for index in batch],
        sizes=[(len(one), len(two)) for one, two in chosen],
    )


def _normal(states: Tensor) -> Tensor:
    """Normalise to mean 0 and variance 1: the scale of states differs a lot between models."""
    return F.layer_norm(states.float(), states.shape[-1:])


def _next(states: Tensor) -> Tensor:
    """Give every position the states of the one after it; the last gets zeros."""
    return F.pad(states[:, 1:], (0, 0, 0, 1))

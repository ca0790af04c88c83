"""Which sentences go into which update: fixed by the seed, no matter who computes them or when.

An update takes consecutive batches of its epoch until they hold enough target tokens. With several
processes the batches of an update are dealt out among them, and split if there are too few; the
gradient stays the same sum.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt

from relakit.data.batches import make_batches
from relakit.data.prepared_reader import EncodedSplit
from relakit.train.recipe import TrainingSection


@dataclass(frozen=True)
class Update:
    """The work of one update of the weights."""

    number: int
    """Counted from 1, over all epochs"""
    epoch: int
    """Counted from 0"""
    batches: tuple[npt.NDArray[np.int64], ...]
    """Indices of the sentences of each batch"""
    target_tokens: int
    """In all batches together, each sentence with its end-of-sentence token"""
    is_last_of_epoch: bool


def plan_updates(
    split: EncodedSplit,
    *,
    batch_tokens: int,
    update_tokens: int,
    seed: int,
    after: int = 0,
    epoch: int = 0,
    before_epoch: int = 0,
) -> Iterator[Update]:
    """All updates after number ``after``, without end.

    Args:
        split: the training data.
        batch_tokens: padded tokens in a batch, at most.
        update_tokens: target tokens in an update, roughly.
        seed: decides the shuffling.
        after: how many updates are done already.
        epoch: the epoch of update ``after``.
        before_epoch: how many updates the epochs before that one had.
    """
    number = before_epoch
    for current in count(epoch):
        batches = make_batches(
            split.source_lengths,
            split.target_lengths,
            batch_tokens=batch_tokens,
            seed=seed,
            epoch=current,
        )
        groups = group_batches(batches, split.target_lengths, update_tokens)
        for position, (group, tokens) in enumerate(groups):
            number += 1
            if number > after:
                last = position == len(groups) - 1
                yield Update(number, current, tuple(group), tokens, last)


def first_epoch(split: EncodedSplit, training: TrainingSection) -> list[Update]:
    """The updates of a run's first epoch."""
    updates = plan_updates(
        split,
        batch_tokens=training.batch_tokens,
        update_tokens=training.update_tokens,
        seed=training.seed,
    )
    epoch = []
    for update in updates:
        epoch.append(update)
        if update.is_last_of_epoch:
            break
    return epoch


def total_updates(training: TrainingSection, per_epoch: int) -> int | None:
    """How many updates a run will have, if all epochs are like the first; None if time ends it."""
    limits = [training.updates] if training.updates is not None else []
    if training.epochs is not None:
        limits.append(training.epochs * per_epoch)
    return min(limits, default=None)


def group_batches(
    batches: list[npt.NDArray[np.int64]],
    target_lengths: npt.NDArray[np.integer],
    update_tokens: int,
) -> list[tuple[list[npt.NDArray[np.int64]], int]]:
    """Group consecutive batches until they have ``update_tokens`` target tokens.

    A group ends where one more batch would take it further from that number.
    """
    sizes = [int(target_lengths[batch].sum()) + len(batch) for batch in batches]
    groups: list[tuple[list[npt.NDArray[np.int64]], int]] = []
    group: list[npt.NDArray[np.int64]] = []
    tokens = 0
    for batch, size in zip(batches, sizes, strict=True):
        if group and tokens + size - update_tokens > update_tokens - tokens:
            groups.append((group, tokens))
            group, tokens = [], 0
        group.append(batch)
        tokens += size
    if group:
        groups.append((group, tokens))
    return groups


def enough_batches(
    batches: Sequence[npt.NDArray[np.int64]], processes: int
) -> list[npt.NDArray[np.int64]]:
    """The batches of an update, with the largest halved until every process has one.

    Only an update with fewer sentences than processes leaves some without work.
    """
    parts = list(batches)
    while len(parts) < processes:
        largest = max(range(len(parts)), key=lambda place: len(parts[place]))
        if len(parts[largest]) < 2:
            break
        batch = parts[largest]
        # Sentences are sorted by length: taking every other one makes equal halves.
        parts[largest] = batch[::2]
        parts.append(batch[1::2])
    return parts

"""Batches of sentence pairs of similar length, in a random order set by a seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from relakit.data.bpe_dropout import Sentences, SplitAnew
from relakit.data.prepared_reader import EncodedSide, EncodedSplit
from relakit.data.tokenizer import BEGIN, END, PAD

Integers = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Batch:
    """Token ids of n sentence pairs, padded with PAD on the right.

    S and T are the lengths of the longest source and target, in tokens.
    """

    source: npt.NDArray[np.int64]
    """[n, S + 1], END after each sentence."""
    target_in: npt.NDArray[np.int64]
    """[n, T + 1], BEGIN before each sentence: what the decoder reads."""
    target_out: npt.NDArray[np.int64]
    """[n, T + 1], END after each sentence: what the decoder must predict."""
    target_tokens: int
    """Entries of ``target_out`` that are not PAD."""
    indices: npt.NDArray[np.int64]
    """The indices of these pairs in the split."""


def make_batches(
    source_lengths: Integers,
    target_lengths: Integers,
    *,
    batch_tokens: int,
    seed: int,
    epoch: int,
) -> list[npt.NDArray[np.int64]]:
    """The batches of one epoch, as indices of pairs; every pair is in exactly one of them.

    The pairs are shuffled, then sorted by length (pairs of equal lengths stay shuffled), cut where
    the longer side, with END and padding, would exceed ``batch_tokens``, and the batches are
    shuffled. A single pair that exceeds it is a batch of its own. Seed and epoch decide everything.
    """
    if batch_tokens < 1:
        raise ValueError(f"batch_tokens must be at least 1, got {batch_tokens}")
    if len(source_lengths) != len(target_lengths):
        raise ValueError(
            f"there are {len(source_lengths):,} source lengths and {len(target_lengths):,} target "
            "lengths"
        )
    if not len(source_lengths):
        return []
    random = np.random.default_rng((seed, epoch))
    order = _by_length(random.permutation(len(source_lengths)), source_lengths, target_lengths)
    widths = np.maximum(source_lengths, target_lengths)[order] + 1
    bounds = _cut(widths, target_lengths[order], batch_tokens)
    batches = np.split(order, bounds)
    return [batches[number] for number in random.permutation(len(batches))]


def collate(split: EncodedSplit, indices: npt.ArrayLike) -> Batch:
    """The token ids of some pairs of a split, as a batch."""
    chosen = np.asarray(indices, dtype=np.int64)
    source, target = (_gather(side, chosen) for side in (split.source_side, split.target_side))
    return _batch(source, target, chosen)


def collate_anew(
    split: EncodedSplit,
    indices: npt.ArrayLike,
    split_anew: SplitAnew,
    *,
    seed: str,
    batch_tokens: int,
) -> list[Batch]:
    """Like `collate`, with new tokens for the same words; several batches if too large for one.

    The new split has more tokens, and ``batch_tokens`` limits what is computed at once.
    """
    chosen = np.asarray(indices, dtype=np.int64)
    sides = [
        split_anew("source", _gather(split.source_side, chosen), seed),
        split_anew("target", _gather(split.target_side, chosen), seed),
    ]
    widths = np.maximum(sides[0][1], sides[1][1]) + 1
    bounds = [0, *_cut_in_order(widths, batch_tokens), len(chosen)]
    batches = []
    for first, last in pairwise(bounds):
        source, target = (_some(side, first, last) for side in sides)
        batches.append(_batch(source, target, chosen[first:last]))
    return batches


def _batch(source: Sentences, target: Sentences, indices: npt.NDArray[np.int64]) -> Batch:
    return Batch(
        source=_padded(*source, end=END),
        target_in=_padded(*target, begin=BEGIN),
        target_out=_padded(*target, end=END),
        target_tokens=int(target[1].sum()) + len(indices),
        indices=indices,
    )


def _some(sentences: Sentences, first: int, last: int) -> Sentences:
    tokens, lengths = sentences
    start, end = lengths[:first].sum(), lengths[:last].sum()
    return tokens[start:end], lengths[first:last]


def _cut_in_order(widths: Integers, batch_tokens: int) -> list[int]:
    """Where batches start (except the first), if sentences stay in order."""
    bounds: list[int] = []
    start = longest = 0
    for place, width in enumerate(widths.tolist()):
        if place > start and max(longest, width) * (place - start + 1) > batch_tokens:
            bounds.append(place)
            start, longest = place, 0
        longest = max(longest, width)
    return bounds


def pad_batch(
    sentences: Sequence[npt.ArrayLike],
    *,
    begin: int | None = None,
    end: int | None = None,
    width: int | None = None,
) -> npt.NDArray[np.int64]:
    """Token ids of sentences as one matrix, with ``begin`` before and ``end`` after each.

    The matrix has ``width`` columns, or as many as the longest sentence needs.
    """
    arrays = [np.asarray(sentence, dtype=np.int64) for sentence in sentences]
    lengths = np.array([len(array) for array in arrays], dtype=np.int64)
    tokens = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
    return _padded(tokens, lengths, begin=begin, end=end, width=width)


def _by_length(
    shuffled: npt.NDArray[np.int64], source_lengths: Integers, target_lengths: Integers
) -> npt.NDArray[np.int64]:
    """Sort by target length, then by source length, alternately rising and falling.

    At each new target length the source lengths continue where the last ones ended, so a batch that
    spans both target lengths has little padding.
    """
    longest = int(source_lengths.max())
    keys = target_lengths.astype(np.int64) * (longest + 1)
    keys += np.where(target_lengths % 2 == 0, source_lengths, longest - source_lengths)
    # The smallest type: NumPy sorts 16 bits by counting, and large corpora need the memory.
    keys = keys.astype(np.min_scalar_type(int(keys.max())))
    return shuffled[np.argsort(keys[shuffled], kind="stable")]


def _cut(widths: Integers, target_lengths: Integers, batch_tokens: int) -> npt.NDArray[np.int64]:
    """Where batches start (except the first), each as large as the budget allows.

    ``target_lengths`` never decrease, so no batch has more sentences than its first target allows.
    """
    bounds: list[int] = []
    start, count = 0, len(widths)
    while start < count:
        most = min(batch_tokens // (int(target_lengths[start]) + 1), count - start)
        sizes = np.maximum.accumulate(widths[start : start + most]) * np.arange(1, most + 1)
        start += max(1, int(np.searchsorted(sizes, batch_tokens, side="right")))
        bounds.append(start)
    return np.array(bounds[:-1], dtype=np.int64)


def _gather(side: EncodedSide, indices: npt.NDArray[np.int64]) -> Sentences:
    """The concatenated tokens of some sentences, and the length of each."""
    lengths = side.lengths[indices].astype(np.int64)
    # A token's position in the result, plus the shift from there to its sentence in the file.
    shifts = side.offsets[indices] - (np.cumsum(lengths) - lengths)
    positions = np.arange(int(lengths.sum())) + np.repeat(shifts, lengths)
    return side.tokens[positions].astype(np.int64), lengths


def _padded(
    tokens: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    *,
    begin: int | None = None,
    end: int | None = None,
    width: int | None = None,
) -> npt.NDArray[np.int64]:
    first = int(begin is not None)
    width = width or int(lengths.max(initial=0)) + first + int(end is not None)
    matrix = np.full((len(lengths), width), PAD, dtype=np.int64)
    columns = np.arange(width)
    matrix[(columns >= first) & (columns < lengths[:, None] + first)] = tokens
    if begin is not None:
        matrix[:, 0] = begin
    if end is not None:
        matrix[np.arange(len(lengths)), lengths + first] = end
    return matrix

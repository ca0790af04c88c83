"""Pairs as tokens: which are computed together, and which wrong source a target gets."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from relakit.analysis.pairs import AnalysisPair
from relakit.analysis.word_map import Span, words_of_tokens
from relakit.data.batches import pad_batch
from relakit.data.tokenizer_pair import Tokenizers

TokenPair: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Ids of source and target, without special tokens."""

_PADDED_TO: Final = 8
"""Positions are padded to a multiple of this; attention kernels work on such blocks anyway."""
_FEWEST_POSITIONS: Final = 16
"""Products of smaller matrices have different last digits in a batch than alone."""
WINDOW: Final = 1000
"""How many pairs are read before they are computed, so that a batch has similar lengths."""
WINDOW_TOKENS: Final = 1 << 16
"""A window ends early at this many source tokens: their encoder output may be kept in memory."""


@dataclass(frozen=True)
class EncodedPair:
    """A pair, where its tokens are, and which word each belongs to."""

    pair: AnalysisPair
    source_spans: tuple[Span, ...]
    target_spans: tuple[Span, ...]
    source_words: npt.NDArray[np.int64]
    target_words: npt.NDArray[np.int64]


class EncodedPairs:
    """Encodes pairs on demand, and keeps each until its attention has been computed.

    Batches are sorted by length, so attention does not come in the order of the pairs.
    """

    def __init__(self, tokenizer: Tokenizers) -> None:
        self._tokenizer = tokenizer
        self._waiting: dict[int, EncodedPair] = {}

    def read(self, pairs: Iterable[AnalysisPair]) -> Iterator[TokenPair]:
        """The token ids of each pair."""
        for index, pair in enumerate(pairs):
            source = self._tokenizer.source.encode(pair.source)
            target = pair.target_tokens or self._tokenizer.target.encode(pair.target)
            self._waiting[index] = EncodedPair(
                pair,
                tuple(source.spans),
                tuple(target.spans),
                words_of_tokens(source.spans, pair.source_words),
                words_of_tokens(target.spans, pair.target_words),
            )
            yield source.ids, target.ids

    def take(self, index: int) -> EncodedPair:
        """Return the pair with this number, from 0, and stop keeping it."""
        return self._waiting.pop(index)


def read_windows(pairs: Iterable[TokenPair], most: int) -> Iterator[list[TokenPair]]:
    """The pairs in lists of at most ``most``, each read on demand."""
    window: list[TokenPair] = []
    tokens = 0
    for pair in pairs:
        window.append(pair)
        tokens += len(pair[0]) + 1
        if len(window) == most or tokens >= WINDOW_TOKENS:
            yield window
            window, tokens = [], 0
    if window:
        yield window


def padded_size(size: int) -> int:
    """How many positions are computed for a sentence of ``size`` tokens, padding included.

    This depends on the sentence alone, so that a pair's results are bit-identical whichever pairs
    are in its batch. At least one position is padding, so that there is always a mask.
    """
    return max(_FEWEST_POSITIONS, (size // _PADDED_TO + 1) * _PADDED_TO)


def pad_sentences(sentences: Sequence[Sequence[int]], **ends: int) -> npt.NDArray[np.int64]:
    """``[sentences, padded_size]`` ids, with a token at one end, as added by `pad_batch`."""
    return pad_batch(sentences, **ends, width=padded_size(1 + max(map(len, sentences))))


def plan_pair_batches(
    sizes: Sequence[tuple[int, int]], batch_tokens: int, matrix_entries: int
) -> list[list[int]]:
    """Indices of pairs to compute together, the longest first.

    All pairs of a batch have the same `padded_size` on either side. A batch has at most
    ``batch_tokens`` tokens on either side, padding included, and at most ``matrix_entries`` entries
    in square matrices over the longer side; but at least one pair.

    Args:
        sizes: how many tokens source and target have, special ones included.
        batch_tokens: see above.
        matrix_entries: see above.
    """
    batches: list[list[int]] = []
    shapes = [(padded_size(target), padded_size(source)) for source, target in sizes]
    ordered = sorted(range(len(sizes)), key=shapes.__getitem__, reverse=True)
    for shape, group in groupby(ordered, key=shapes.__getitem__):
        indices, longer = list(group), max(shape)
        most = max(1, min(batch_tokens // longer, matrix_entries // longer**2))
        batches += [indices[first : first + most] for first in range(0, len(indices), most)]
    return batches


def wrong_sources(count: int, seed: Sequence[int]) -> list[int]:
    """For each of ``count`` pairs (at least two), the number of a different pair.

    Each gets the pair that follows it in a random circular order.
    """
    if count < 2:
        raise ValueError(f"at least 2 pairs are needed to exchange sources, got {count}")
    circle = np.random.default_rng(seed).permutation(count)
    others = np.empty(count, dtype=np.int64)
    others[circle] = np.roll(circle, -1)
    found: list[int] = others.tolist()
    return found

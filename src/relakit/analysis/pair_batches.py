"""Pairs as tokens: which are computed together, and which wrong source a target gets."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from relakit.analysis.pairs import AnalysisPair
from relakit.analysis.word_map import Span, words_of_tokens
from relakit.data.tokenizer_pair import Tokenizers

TokenPair: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Ids of source and target, without special tokens."""

BATCH_TOKENS: Final = 4096
"""Padded tokens of the longer side that are computed at once, by default."""
WINDOW: Final = 1000
"""Pairs that are read before they are computed, so that batches have pairs of similar length."""
WINDOW_TOKENS: Final = 1 << 16
"""Source tokens that end a window early: the encoder's output for all of them may be kept."""


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
            target = self._tokenizer.target.encode(pair.target)
            self._waiting[index] = EncodedPair(
                pair,
                tuple(source.spans),
                tuple(target.spans),
                words_of_tokens(source.spans, pair.source_words),
                words_of_tokens(target.spans, pair.target_words),
            )
            yield source.ids, target.ids

    def take(self, index: int) -> EncodedPair:
        """The pair with this number, from 0; it is then no longer kept."""
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


def plan_pair_batches(
    sizes: Sequence[tuple[int, int]], batch_tokens: int, matrix_entries: int
) -> list[list[int]]:
    """Indices of pairs to compute together, the longest first.

    With its padding, a batch has at most ``batch_tokens`` tokens on either side, and at most
    ``matrix_entries`` entries in square matrices over the longer side; but at least one pair.

    Args:
        sizes: tokens of source and target, special ones included.
        batch_tokens: see above.
        matrix_entries: see above.
    """
    batches: list[list[int]] = []
    longest = 0
    for index in sorted(range(len(sizes)), key=lambda i: (-sizes[i][1], -sizes[i][0])):
        wider = max(longest, *sizes[index])
        count = len(batches[-1]) + 1 if batches else 0
        too_large = count * wider > batch_tokens or count * wider**2 > matrix_entries
        if not batches or too_large:
            batches.append([])
            wider = max(sizes[index])
        longest = wider
        batches[-1].append(index)
    return batches


def wrong_sources(count: int, seed: Sequence[int]) -> list[int]:
    """For each of ``count`` pairs, at least two, another one: no pair gets itself.

    Each gets the pair that follows it in a random circular order.
    """
    if count < 2:
        raise ValueError(f"at least 2 pairs are needed to exchange sources, got {count}")
    circle = np.random.default_rng(seed).permutation(count)
    others = np.empty(count, dtype=np.int64)
    others[circle] = np.roll(circle, -1)
    found: list[int] = others.tolist()
    return found

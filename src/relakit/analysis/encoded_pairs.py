"""Pairs as tokens, kept until their attention comes back, in whatever order it does."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from relakit.analysis.analysis_pairs import AnalysisPair
from relakit.analysis.pair_batches import TokenPair
from relakit.analysis.words import Span, words_of_tokens
from relakit.data.tokenizer import Tokenizer

Pair = TypeVar("Pair", bound=AnalysisPair)


@dataclass(frozen=True)
class EncodedPair(Generic[Pair]):
    """A pair, where its tokens are, and which word each belongs to."""

    pair: Pair
    source_spans: tuple[Span, ...]
    target_spans: tuple[Span, ...]
    source_words: npt.NDArray[np.int64]
    target_words: npt.NDArray[np.int64]


class EncodedPairs(Generic[Pair]):
    """Encodes pairs as they are asked for, and keeps each until it is taken."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._waiting: dict[int, EncodedPair[Pair]] = {}

    def read(self, pairs: Iterable[Pair]) -> Iterator[TokenPair]:
        """The token ids of each pair."""
        for index, pair in enumerate(pairs):
            source = self._tokenizer.encode(pair.source)
            target = self._tokenizer.encode(pair.target)
            self._waiting[index] = EncodedPair(
                pair,
                tuple(source.spans),
                tuple(target.spans),
                words_of_tokens(source.spans, pair.source_words),
                words_of_tokens(target.spans, pair.target_words),
            )
            yield source.ids, target.ids

    def take(self, index: int) -> EncodedPair[Pair]:
        """The pair of that number, from 0; it is kept no longer."""
        return self._waiting.pop(index)

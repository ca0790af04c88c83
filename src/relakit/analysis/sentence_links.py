"""The links of all sentence pairs, in every layer and head, and as Pharaoh lines. No torch here."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from relakit.analysis.links import READINGS, Reading
from relakit.analysis.word_map import NO_WORD

MOST_BYTES: Final = 32_000_000
"""The most memory that kept links may take; those of a larger test set are not kept at all."""


@dataclass(frozen=True, eq=False)
class SentenceLinks:
    """Which source word each target word of a test set is linked to."""

    target_words: tuple[int, ...]
    """How many words the target of each pair has, in the order of the pairs"""
    source_words: npt.NDArray[np.int16]
    """``[readings, layers, heads + 1, target words of all pairs]``: the source word of each target
    word's link, from 0, or `NO_WORD`. The last head is the mean of the layer's heads."""

    def pharaoh(self, reading: Reading, layer: int, head: int) -> Iterator[str]:
        """A line ``0-0 1-2`` for each pair: source word and target word, both from 0.

        Args:
            reading: the step in which a target token's attention is read.
            layer: from 0.
            head: from 0; the number of heads stands for their mean.
        """
        start = 0
        links = self.source_words[READINGS.index(reading), layer, head].tolist()
        for words in self.target_words:
            of_pair = enumerate(links[start : start + words])
            yield " ".join(f"{source}-{target}" for target, source in of_pair if source != NO_WORD)
            start += words


class LinkTotals:
    """The links that `SentenceLinks` is made from, unless they grow too large."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: dict[int, npt.NDArray[np.int16]] = {}

    def add(self, index: int, links: npt.NDArray[np.int64]) -> None:
        """Add what `links_of_heads` found in the pair with this number."""
        self._bytes += links.size * np.dtype(np.int16).itemsize
        if self._bytes > self._most_bytes:
            self._kept.clear()
        else:
            self._kept[index] = links.astype(np.int16)

    def result(self) -> SentenceLinks | None:
        """None if there are no pairs, or too many."""
        if not self._kept:
            return None
        ordered = [self._kept[index] for index in sorted(self._kept)]
        return SentenceLinks(
            tuple(links.shape[-1] for links in ordered), np.concatenate(ordered, axis=-1)
        )

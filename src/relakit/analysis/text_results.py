"""What is known of self-attention over texts. No torch here."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relakit.analysis.results import KindResult, ModelAnalysis


@dataclass(frozen=True)
class TextTokens:
    """A text as a model reads it, in words for people."""

    text: str
    labels: tuple[str, ...]
    """Of each token, special ones included"""
    words: tuple[str, ...] | None = None
    """The words in their order, a special token being one of its own; None if the tokenizer does
    not tell which tokens make a word"""
    token_words: tuple[int, ...] = ()
    """The word of each token, or `NO_WORD`"""


@dataclass(frozen=True)
class TextView:
    """All self-attention of one model over one text, to look at."""

    index: int
    """Which of the texts it is, from 0"""
    read: TextTokens
    weights: npt.NDArray[np.float32]
    """``[layers, heads, queries, keys]``"""
    seen: npt.NDArray[np.int32]
    """``[layers, queries, 2]``: the first key that a query may see, and the one after the last"""

    @property
    def text(self) -> str:
        return self.read.text

    @property
    def tokens(self) -> tuple[str, ...]:
        return self.read.labels


@dataclass(frozen=True)
class TextAnalysis:
    """A model's self-attention over texts: the numbers, and texts to look at.

    `relakit.report.write_report` makes a folder of tables, figures and a page of it.
    """

    analysis: ModelAnalysis
    layers: tuple[str, ...]
    """The name of each layer's module; one that runs several times is there several times"""
    views: tuple[TextView, ...]
    """Of the texts that were to be kept, in their order"""

    @property
    def result(self) -> KindResult:
        """By layer and head, as `relakit analyze` has them for translation models"""
        return self.analysis.main

    @property
    def texts(self) -> int:
        """How many were read"""
        return self.analysis.pairs

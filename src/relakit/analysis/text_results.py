"""The results of analyzing self-attention over texts. No torch here."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relakit.analysis.results import KindResult, ModelAnalysis


@dataclass(frozen=True)
class TextTokens:
    """A text as a model reads it, in human-readable form."""

    text: str
    labels: tuple[str, ...]
    """The label of each token, special ones included"""
    words: tuple[str, ...] | None = None
    """The words in order, where a special token is a word of its own; None if the tokenizer does
    not tell which tokens make up a word"""
    token_words: tuple[int, ...] = ()
    """The word of each token, or `NO_WORD`"""


@dataclass(frozen=True)
class TextView:
    """All self-attention of one model over one text, for inspection."""

    index: int
    """The number of the text, from 0"""
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
    """A model's self-attention over texts: the numbers, and texts to inspect.

    `relakit.report.write_report` turns it into a folder of tables, figures and a page.
    """

    analysis: ModelAnalysis
    layers: tuple[str, ...]
    """The name of each layer's module; a module that runs several times is listed several times"""
    views: tuple[TextView, ...]
    """Views of the texts that were to be kept, in order"""

    @property
    def result(self) -> KindResult:
        """The numbers by layer and head, as in `relakit analyze` for translation models"""
        return self.analysis.main

    @property
    def texts(self) -> int:
        """How many texts were read"""
        return self.analysis.pairs

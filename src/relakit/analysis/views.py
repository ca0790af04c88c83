"""All attention of one sentence pair, to look at. No torch here."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relakit.analysis.alignment import GoldAlignment
from relakit.analysis.results import Kind
from relakit.analysis.words import Span


@dataclass(frozen=True)
class SentenceView:
    """What one model did with one sentence pair, in every layer and head."""

    index: int
    """Which pair of the test set it is, from 0"""
    source: str
    target: str
    """The given translation, which the model was made to write"""
    source_words: tuple[Span, ...]
    target_words: tuple[Span, ...]
    source_token_spans: tuple[Span, ...]
    """Of each token in `source`, without the end-of-sentence token"""
    target_token_spans: tuple[Span, ...]
    source_token_words: tuple[int, ...]
    """The word of each source token, or `NO_WORD`"""
    target_token_words: tuple[int, ...]
    weights: Mapping[Kind, npt.NDArray[np.float32]]
    """``[layers, heads, queries, keys]``, without padding. With S source tokens and T target
    tokens: encoder ``[S+1, S+1]``, the source and its end; decoder ``[T+1, T+1]``, the begin token
    and the target, 0 above the diagonal; cross ``[T+1, S+1]``: row t is of the step that predicts
    target token t (its input is token t-1, or the begin token), the last of the step that predicts
    the end."""
    gold: GoldAlignment | None = None
    output: str | None = None
    """The model's own translation, if it was made"""
    target_tags: tuple[str, ...] | None = None
    """Of each target word, if given"""

"""Align sentence pairs with every head of a model, and count links against gold."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relakit.analysis.alignment_counts import AlignmentCounts
from relakit.analysis.alignment_report import AlignmentReport, AlignmentSettings, EndWeight
from relakit.analysis.cross_attention import capture_cross_attention
from relakit.analysis.gold_pairs import GoldPair
from relakit.analysis.pair_batches import BATCH_TOKENS, TokenPair
from relakit.analysis.words import words_of_tokens
from relakit.data.tokenizer import Tokenizer
from relakit.model import Transformer


def evaluate_alignment(
    model: Transformer,
    tokenizer: Tokenizer,
    pairs: Iterable[GoldPair],
    *,
    end: EndWeight = "ignored",
    batch_tokens: int = BATCH_TOKENS,
) -> AlignmentReport:
    """The alignment error rate of each layer and head's cross-attention, normal and shifted.

    Each target word is linked to the source word that it attends to most (`links_of`). The pairs
    are read as they are needed; memory does not grow with their number.

    Args:
        model: reads the given target while its attention is recorded.
        tokenizer: the model's.
        pairs: with gold links.
        end: what weight on the source's end-of-sentence token does.
        batch_tokens: padded tokens that are computed at once; it has no influence on the result
            but for rounding.

    Raises:
        ValueError: model and tokenizer do not belong together, or there are no sure links.
    """
    config = model.config
    config.check_tokenizer(tokenizer.size)
    counts = AlignmentCounts(config.decoder_layers, config.heads, AlignmentSettings(end=end))
    waiting: dict[int, _Encoded] = {}

    def read() -> Iterator[TokenPair]:
        for index, pair in enumerate(pairs):
            source, target = tokenizer.encode(pair.source), tokenizer.encode(pair.target)
            waiting[index] = _Encoded(
                pair,
                words_of_tokens(source.spans, pair.source_words),
                words_of_tokens(target.spans, pair.target_words),
            )
            yield source.ids, target.ids

    for attention in capture_cross_attention(model, read(), batch_tokens=batch_tokens):
        encoded = waiting.pop(attention.index)
        pair = encoded.pair
        counts.add(attention, pair, pair.gold, encoded.source, encoded.target)
    return counts.report(config.cross_attention)


@dataclass(frozen=True)
class _Encoded:
    """A pair, and the word of each of its tokens."""

    pair: GoldPair
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]

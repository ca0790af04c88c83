"""Align sentence pairs with every head of a model, and count links against gold."""

from collections.abc import Iterable

from relakit.analysis.alignment_counts import AlignmentCounts
from relakit.analysis.alignment_report import AlignmentReport, AlignmentSettings, EndWeight
from relakit.analysis.cross_attention import capture_cross_attention
from relakit.analysis.encoded_pairs import EncodedPairs
from relakit.analysis.gold_pairs import GoldPair
from relakit.analysis.pair_batches import BATCH_TOKENS
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
    encoded: EncodedPairs[GoldPair] = EncodedPairs(tokenizer)
    tokens = encoded.read(pairs)
    for attention in capture_cross_attention(model, tokens, batch_tokens=batch_tokens):
        one = encoded.take(attention.index)
        counts.add(attention, one.pair, one.pair.gold, one.source_words, one.target_words)
    return counts.report(config.attention("cross"))

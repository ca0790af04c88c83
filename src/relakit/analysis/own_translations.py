"""A model's own translations of analyzed pairs: their scores, and its attention as it writes them.

The attention comes from forced decoding, like the attention to the references, so that the two can
be compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from relakit.analysis.attention_pass import attention_batches
from relakit.analysis.pair_batches import EncodedPairs
from relakit.analysis.pairs import AnalysisPair, Pairs
from relakit.analysis.results import AnalyzedModel, SentenceView
from relakit.analysis.totals import view_at
from relakit.analysis.word_map import split_words
from relakit.data.tokenizer_pair import Tokenizers
from relakit.model import ModelConfig, Transformer
from relakit.model.memory import FLOAT_BYTES

if TYPE_CHECKING:
    from relakit.decode.translator import Translator
    from relakit.metrics.bleu import CorpusScore

MOST_BYTES: Final = 1 << 28
"""How much attention to own translations is kept at most."""


def add_translations(
    analyzed: AnalyzedModel,
    translator: "Translator",
    pairs: Pairs,
    outputs: Sequence[str],
    bleu: "CorpusScore",
) -> AnalyzedModel:
    """Add the model's translations of all pairs to the results.

    Args:
        analyzed: the results of ``translator``'s model on ``pairs``.
        translator: wrote the translations.
        pairs: the pairs with the references.
        outputs: the translation of each pair's source.
        bleu: the score of all ``outputs``.

    Returns:
        The results with BLEU. Each kept sentence has its translation, chrF and, where the
        translation differs from the reference, the attention to it. The attention to the longest
        ones is left out if all of it would take more than `MOST_BYTES`, which can happen with the
        endless translations of an untrained model.
    """
    from relakit.metrics.sentence_scores import sentence_chrf  # sacrebleu takes a while to load

    kept = {view.index for view in analyzed.views}
    own = {
        index: _with_output(pair, outputs[index])
        for index, pair in enumerate(pairs)
        if index in kept
    }
    differing = {
        view.index: own[view.index] for view in analyzed.views if outputs[view.index] != view.target
    }
    shown = _within_memory(differing, translator.model.config, translator.tokenizers)
    own_views = view_pairs(translator.model, translator.tokenizers, shown)
    views = [
        replace(
            view,
            output=outputs[view.index],
            chrf=sentence_chrf(outputs[view.index], view.target),
            own=own_views.get(view.index),
        )
        for view in analyzed.views
    ]
    scores = {"bleu": bleu.score, "bleu_signature": bleu.signature}
    return replace(analyzed, analysis=analyzed.analysis.model_copy(update=scores), views=views)


def _with_output(pair: AnalysisPair, output: str) -> AnalysisPair:
    """The pair with a different target, about which nothing else is known."""
    words = split_words(output, tokenized=pair.tokenized)
    return AnalysisPair(pair.source, output, pair.source_words, words, tokenized=pair.tokenized)


def _within_memory(
    pairs: Mapping[int, AnalysisPair], config: ModelConfig, tokenizer: Tokenizers
) -> dict[int, AnalysisPair]:
    """The pairs, without the longest ones if the attention of all would take too much memory."""

    def size(pair: AnalysisPair) -> int:
        """Bytes of a pair's weights."""
        source = len(tokenizer.source.encode(pair.source).ids) + 1
        target = len(tokenizer.target.encode(pair.target).ids) + 1
        decoder = config.decoder_layers * target * (target + source)
        return FLOAT_BYTES * config.heads * (config.encoder_layers * source**2 + decoder)

    sizes = {index: size(pair) for index, pair in pairs.items()}
    kept, room = set(), MOST_BYTES
    for index in sorted(sizes, key=sizes.__getitem__):
        room -= sizes[index]
        if room < 0:
            break
        kept.add(index)
    return {index: pair for index, pair in pairs.items() if index in kept}


def view_pairs(
    model: Transformer, tokenizer: Tokenizers, pairs: Mapping[int, AnalysisPair]
) -> dict[int, SentenceView]:
    """Force-decode pairs, and keep all attention of each. Pairs and views are by pair number."""
    numbers = list(pairs)
    encoded = EncodedPairs(tokenizer)
    views = {}
    for batch in attention_batches(model, encoded.read(pairs.values()), losses=range(len(numbers))):
        for place, index in enumerate(batch.indices):
            view = view_at(batch, place, encoded.take(index))
            views[numbers[index]] = replace(view, index=numbers[index])
    return views

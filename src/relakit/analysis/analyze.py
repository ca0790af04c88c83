"""All numbers of one model on one test set, from one pass over it."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Literal

import numpy as np

from relakit.analysis.alignment_counts import AlignmentCounts
from relakit.analysis.alignment_report import AlignmentReport, AlignmentSettings, EndWeight
from relakit.analysis.analysis_pairs import AnalysisPair
from relakit.analysis.attention_pass import AttentionBatch, attention_batches
from relakit.analysis.class_totals import ClassTotals
from relakit.analysis.cross_attention import cross_attention_of
from relakit.analysis.encoded_pairs import EncodedPair, EncodedPairs
from relakit.analysis.flops import rela_g_flops, softmax_flops
from relakit.analysis.kind_totals import KindTotals
from relakit.analysis.pair_batches import BATCH_TOKENS, TokenPair
from relakit.analysis.results import AnalysisSettings, FlopCounts, ModelAnalysis
from relakit.analysis.shuffled_totals import ShuffledTotals
from relakit.analysis.views import SentenceView
from relakit.analysis.word_classes import query_classes, token_class
from relakit.data.tokenizer import Tokenizer
from relakit.model import ATTENTION_KINDS, Transformer

FLOP_LENGTHS: Final = (10, 30, 100, 300, 1000)


def analyze_model(
    model: Transformer,
    tokenizer: Tokenizer,
    pairs: Iterable[AnalysisPair],
    *,
    name: str,
    settings: AnalysisSettings | None = None,
    end: EndWeight = "ignored",
    keep: Collection[int] = (),
    batch_tokens: int = BATCH_TOKENS,
    progress: Callable[[int], None] | None = None,
) -> tuple[ModelAnalysis, list[SentenceView]]:
    """Force-decode sentence pairs, and compute all that docs/analysis.md tells of.

    The pairs are read as they are needed; memory does not grow with their number, but with that
    of the kept ones.

    Args:
        model: reads the given target while its attention is recorded, without dropout.
        tokenizer: the model's.
        pairs: all of them with tags, or none. Those with gold links are aligned.
        name: what the model is called in tables and figures.
        settings: what the numbers depend on; None for the defaults.
        end: what weight on the source's end-of-sentence token does to alignments.
        keep: the pairs, from 0, of which to return all attention.
        batch_tokens: padded tokens that are computed at once; it has no influence on the result
            but for rounding.
        progress: called now and then with the number of pairs that are done.

    Returns:
        The numbers, without BLEU, and the kept pairs in their order.

    Raises:
        ValueError: model and tokenizer do not belong together, there are no pairs or fewer than
            ``keep`` says, tags for some pairs only, or gold without a sure link.
    """
    model.config.check_tokenizer(tokenizer.size)
    run = _Analysis(model, tokenizer, settings or AnalysisSettings(), end, frozenset(keep))
    batches = attention_batches(
        model,
        run.read(pairs),
        shuffle_seed=run.settings.shuffle_seed,
        batch_tokens=batch_tokens,
    )
    for batch in batches:
        run.add(batch)
        if progress is not None:
            # A pair is done when its target has met the wrong source, too.
            progress((run.pairs + run.shuffled.pairs) // 2)
    analysis = run.result(name)
    if progress is not None:
        progress(run.pairs)
    return analysis, sorted(run.views, key=lambda view: view.index)


class _Analysis:
    """The totals so far, and the pairs of the current window that have not run yet."""

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        settings: AnalysisSettings,
        end: EndWeight,
        keep: frozenset[int],
    ) -> None:
        config = model.config
        self.config = config
        self.settings = settings
        self.keep = keep
        self.pairs = self.source_tokens = self.target_tokens = 0
        self.has_tags: bool | None = None
        self.kinds = [KindTotals(kind, config, settings.temperatures) for kind in ATTENTION_KINDS]
        self.classes = ClassTotals(config)
        self.shuffled = ShuffledTotals(config)
        self.alignment = AlignmentCounts(
            config.decoder_layers, config.heads, AlignmentSettings(end=end)
        )
        self.views: list[SentenceView] = []
        self._encoded: EncodedPairs[AnalysisPair] = EncodedPairs(tokenizer)

    def read(self, pairs: Iterable[AnalysisPair]) -> Iterator[TokenPair]:
        return self._encoded.read(self._with_checked_tags(pairs))

    def _with_checked_tags(self, pairs: Iterable[AnalysisPair]) -> Iterator[AnalysisPair]:
        for number, pair in enumerate(pairs, 1):
            has_tags = pair.target_tags is not None
            if self.has_tags is None:
                self.has_tags = has_tags
            elif has_tags != self.has_tags:
                raise ValueError(
                    f"pair {number:,} has {'' if has_tags else 'no '}tags, those before have "
                    f"{'none' if has_tags else 'some'}: give tags for all pairs or for none"
                )
            yield pair

    def add(self, batch: AttentionBatch) -> None:
        self.shuffled.add(batch)
        if batch.is_shuffled:
            return
        self.pairs += len(batch.indices)
        self.source_tokens += int(batch.source_sizes.sum())
        self.target_tokens += int(batch.target_sizes.sum())
        for kind in self.kinds:
            kind.add(batch)
        encoded = {index: self._encoded.take(index) for index in batch.indices}
        self.classes.add(batch, [_classes(encoded[index]) for index in batch.indices])
        if any(one.pair.gold is not None for one in encoded.values()):
            for attention in cross_attention_of(batch):
                one = encoded[attention.index]
                if one.pair.gold is not None:
                    self.alignment.add(
                        attention, one.pair, one.pair.gold, one.source_words, one.target_words
                    )
        for place, index in enumerate(batch.indices):
            if index in self.keep:
                self.views.append(_view(batch, place, encoded[index]))

    def result(self, name: str) -> ModelAnalysis:
        if not self.pairs:
            raise ValueError("there are no pairs to analyse")
        if self.keep and not 0 <= min(self.keep) <= max(self.keep) < self.pairs:
            raise ValueError(
                f"keep must be from 0 to {self.pairs - 1}, as there are {self.pairs:,} pairs, got "
                f"{min(self.keep)} to {max(self.keep)}"
            )
        heads, dim = self.config.heads, self.config.dim
        origin: Literal["tags", "token classes"] = "tags" if self.has_tags else "token classes"
        return ModelAnalysis(
            name=name,
            settings=self.settings,
            pairs=self.pairs,
            source_tokens=self.source_tokens,
            target_tokens=self.target_tokens,
            kinds=tuple(kind.result() for kind in self.kinds),
            shuffled=self.shuffled.result(self.settings.confidence),
            classes=self.classes.result(origin),
            flops=tuple(
                FlopCounts(
                    length=length,
                    softmax=softmax_flops(length, heads),
                    rela_g=rela_g_flops(length, heads, dim),
                )
                for length in FLOP_LENGTHS
            ),
            alignment=self._alignment_report(),
        )

    def _alignment_report(self) -> AlignmentReport | None:
        if not self.alignment.pairs:
            return None
        return self.alignment.report(self.config.attention("cross"))


def _classes(encoded: EncodedPair[AnalysisPair]) -> list[str | None]:
    """Of each query: the tag, or else the class, of the word before it."""
    pair = encoded.pair
    classes = pair.target_tags
    if classes is None:
        classes = tuple(token_class(pair.target[start:end]) for start, end in pair.target_words)
    return query_classes(encoded.target_words, classes)


def _view(batch: AttentionBatch, place: int, encoded: EncodedPair[AnalysisPair]) -> SentenceView:
    """The pair at one place of a batch, with copies of its attention."""
    pair = encoded.pair
    weights = {}
    for kind in ATTENTION_KINDS:
        queries = int(batch.query_sizes(kind)[place])
        keys = int(batch.key_sizes(kind)[place])
        layers = [layer[place, :, :queries, :keys].numpy() for layer in batch.layers[kind]]
        weights[kind] = np.stack(layers)
    return SentenceView(
        index=batch.indices[place],
        source=pair.source,
        target=pair.target,
        source_words=pair.source_words,
        target_words=pair.target_words,
        source_token_spans=encoded.source_spans,
        target_token_spans=encoded.target_spans,
        source_token_words=tuple(encoded.source_words.tolist()),
        target_token_words=tuple(encoded.target_words.tolist()),
        weights=weights,
        gold=pair.gold,
        target_tags=pair.target_tags,
    )

"""All numbers of one model, added up over the batches of one pass."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from torch import Tensor

from relakit.analysis.aer import LinkCounts
from relakit.analysis.attention_pass import AttentionBatch, CrossAttention, cross_attention_of
from relakit.analysis.attention_sinks import end_key_share, first_key_share
from relakit.analysis.attention_weights import SUM_TO_ONE
from relakit.analysis.diversity import diversity_share
from relakit.analysis.flops import rela_g_flops, softmax_flops
from relakit.analysis.links import EndWeight, links_of_heads
from relakit.analysis.null_by_class import ClassTotals, query_classes
from relakit.analysis.pair_batches import EncodedPair, EncodedPairs, TokenPair
from relakit.analysis.pair_links import PairCount, PairLinks
from relakit.analysis.pairs import AnalysisPair
from relakit.analysis.rates import ShareTotal, check_numbers, head_values, layer_values
from relakit.analysis.results import (
    AlignmentResult,
    AlignmentSettings,
    AnalysisSettings,
    FlopCounts,
    KindResult,
    ModelAnalysis,
    SentenceView,
)
from relakit.analysis.sentence_links import LinkTotals, SentenceLinks
from relakit.analysis.shuffled_targets import ShuffledTotals
from relakit.analysis.sparsity import layer_null_share, null_share, zero_share
from relakit.analysis.tags import tag_class, token_class
from relakit.attention_kinds import ATTENTION_KINDS, AttentionKind
from relakit.data.tokenizer_pair import Tokenizers
from relakit.model import ModelConfig, Transformer
from relakit.model.attention_outputs import LayerOutputs, OutputSums
from relakit.model.attention_setting import read_attention, write_attention
from relakit.nn.variants import AttentionSpec

FLOP_LENGTHS: Final = (10, 30, 100, 300, 1000)


class KindTotals:
    """The totals that `KindResult` is computed from; they do not grow with the data."""

    def __init__(
        self,
        kind: AttentionKind,
        spec: AttentionSpec,
        *,
        layers: int,
        heads: int,
        temperatures: Sequence[float],
    ) -> None:
        self.kind = kind
        self.attention = write_attention(read_attention(spec))
        self.queries = 0
        self.zeros = ShareTotal(layers, heads)
        self.null = ShareTotal(layers, heads)
        self.layer_null = ShareTotal(layers)
        self.first = ShareTotal(layers, heads)
        self.end = None if kind == "decoder" else ShareTotal(layers, heads)
        sums_to_one = spec.activation in SUM_TO_ONE
        self.temperatures: dict[str, float | None] = (
            {"1": None} if sums_to_one else {f"{number:g}": number for number in temperatures}
        )
        self.diversity = {name: ShareTotal(layers) for name in self.temperatures}
        self.outputs = [OutputSums()] * layers

    @classmethod
    def of_model(
        cls, kind: AttentionKind, config: ModelConfig, temperatures: Sequence[float]
    ) -> "KindTotals":
        """The totals for one of the toolkit's models."""
        return cls(
            kind,
            config.attention_spec(kind),
            layers=config.encoder_layers if kind == "encoder" else config.decoder_layers,
            heads=config.heads,
            temperatures=temperatures,
        )

    def add(self, batch: AttentionBatch) -> None:
        """Count all layers of a batch."""
        self.queries += int(batch.query_sizes(self.kind).sum())
        for layer, weights in enumerate(batch.layers[self.kind]):
            self.add_layer(layer, weights, batch.valid(self.kind), batch.key_sizes(self.kind))
        for layer, sums in enumerate(batch.outputs[self.kind]):
            self.outputs[layer] += sums

    def add_layer(
        self, layer: int, weights: Tensor, valid: Tensor | None, key_sizes: Tensor
    ) -> None:
        """Count one layer of a batch.

        Args:
            layer: which layer it is, from 0.
            weights: ``[batch, heads, queries, keys]``.
            valid: True where a key was not masked; broadcasts to the weights. None: no masking.
            key_sizes: how many keys each sentence has, ``[batch]``.
        """
        self.zeros.add(zero_share(weights, valid), layer)
        self.null.add(null_share(weights, valid), layer)
        self.layer_null.add(layer_null_share(weights, valid), layer)
        self.first.add(first_key_share(weights, valid), layer)
        if self.end is not None:
            self.end.add(end_key_share(weights, key_sizes, valid), layer)
        for name, temperature in self.temperatures.items():
            self.diversity[name].add(diversity_share(weights, valid, temperature), layer)

    def result(self) -> KindResult:
        outputs = None
        if any(sums.values for sums in self.outputs):  # they were measured
            outputs = LayerOutputs.from_sums(self.outputs)
            check_numbers(outputs.rms)
        return KindResult(
            kind=self.kind,
            attention=self.attention,
            queries=self.queries,
            sparsity=head_values(self.zeros.rates()),
            null_rate=head_values(self.null.rates()),
            layer_null_rate=layer_values(self.layer_null.rates()),
            first_sink=head_values(self.first.rates()),
            end_sink=None if self.end is None else head_values(self.end.rates()),
            diversity={name: layer_values(x.rates()) for name, x in self.diversity.items()},
            output_rms=None if outputs is None else outputs.rms,
            closed_gates=None if outputs is None else outputs.closed_gates,
        )


class AlignmentTotals:
    """The totals that `AlignmentResult` is computed from; with ``keep_pairs`` also `PairLinks`."""

    def __init__(self, config: ModelConfig, end: EndWeight, *, keep_pairs: bool = False) -> None:
        self.settings = AlignmentSettings(end=end)
        self.attention = config.attention("cross")
        self.counts = LinkCounts(config.decoder_layers, config.heads)
        self._keep_pairs = keep_pairs
        self._kept: list[PairCount] = []

    def add(self, attention: CrossAttention, encoded: EncodedPair) -> None:
        """Count the links of one pair in all layers and heads at once, if it has gold links."""
        if encoded.pair.gold is not None:
            self.count(attention.index, self.links(attention, encoded), encoded.pair)

    def links(self, attention: CrossAttention, encoded: EncodedPair) -> npt.NDArray[np.int64]:
        """The links of one pair, as `links_of_heads` returns them."""
        return links_of_heads(
            attention.weights,
            encoded.source_words,
            encoded.target_words,
            source_count=len(encoded.pair.source_words),
            target_count=len(encoded.pair.target_words),
            end=self.settings.end,
        )

    def count(self, index: int, links: npt.NDArray[np.int64], pair: AnalysisPair) -> None:
        """Compare the links of pair number ``index`` with its gold links, if it has any."""
        if pair.gold is None:
            return
        counted = self.counts.add(links, pair.gold, len(pair.source_words))
        if self._keep_pairs:
            self._kept.append(PairCount(index, counted, len(pair.gold.sure)))

    def result(self) -> AlignmentResult:
        return AlignmentResult.from_counts(
            self.counts, settings=self.settings, attention=self.attention
        )

    def pair_links(self) -> PairLinks:
        return PairLinks.from_counts(self._kept, result=self.result())


class ModelTotals:
    """The totals that `ModelAnalysis` is computed from, and the pairs read but not yet run."""

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizers,
        settings: AnalysisSettings,
        end: EndWeight,
        keep: frozenset[int],
        *,
        keep_links: bool,
    ) -> None:
        config = model.config
        self.config = config
        self.settings = settings
        self.keep = keep
        self.pairs = self.source_tokens = self.target_tokens = 0
        self.has_tags: bool | None = None
        self.kinds = [
            KindTotals.of_model(kind, config, settings.temperatures) for kind in ATTENTION_KINDS
        ]
        self.classes = ClassTotals(config)
        self.shuffled = ShuffledTotals(config)
        self.alignment = AlignmentTotals(config, end)
        self.links = LinkTotals() if keep_links else None
        self.views: list[SentenceView] = []
        self._encoded = EncodedPairs(tokenizer)

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
        if self.links is not None or any(one.pair.gold is not None for one in encoded.values()):
            for attention in cross_attention_of(batch):
                links = self.alignment.links(attention, encoded[attention.index])
                self.alignment.count(attention.index, links, encoded[attention.index].pair)
                if self.links is not None:
                    self.links.add(attention.index, links)
        for place, index in enumerate(batch.indices):
            if index in self.keep:
                self.views.append(view_at(batch, place, encoded[index]))

    def kept_views(self) -> list[SentenceView]:
        """The kept views in the order of the pairs."""
        return sorted(self.views, key=lambda view: view.index)

    def kept_links(self) -> SentenceLinks | None:
        return None if self.links is None else self.links.result()

    def result(self, name: str) -> ModelAnalysis:
        if not self.pairs:
            raise ValueError("there are no pairs to analyze")
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
            alignment=self.alignment.result() if self.alignment.counts.pairs else None,
        )


def _classes(encoded: EncodedPair) -> list[str | None]:
    """For each query, the tag of the word before it or, without tags, the word's token class."""
    pair = encoded.pair
    words = [pair.target[start:end] for start, end in pair.target_words]
    if pair.target_tags is None:
        classes = [token_class(word) for word in words]
    else:
        classes = [tag_class(*one) for one in zip(pair.target_tags, words, strict=True)]
    return query_classes(encoded.target_words, classes)


def view_at(batch: AttentionBatch, place: int, encoded: EncodedPair) -> SentenceView:
    """The pair at a given place in a batch, with copies of its attention."""
    pair = encoded.pair
    loss = None if batch.losses is None else float(batch.losses[place] / batch.target_sizes[place])
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
        loss=loss,
        target_tags=pair.target_tags,
    )

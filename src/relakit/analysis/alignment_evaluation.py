"""Align sentence pairs with every head of a model, and count links against gold."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relakit.analysis.alignment import READINGS, AlignmentScore, Links, Reading, best_source_words
from relakit.analysis.alignment_report import (
    AlignmentReport,
    AlignmentSettings,
    AttentionScores,
    EndWeight,
)
from relakit.analysis.cross_attention import (
    BATCH_TOKENS,
    CrossAttention,
    TokenPair,
    capture_cross_attention,
)
from relakit.analysis.gold_pairs import GoldPair
from relakit.analysis.words import NO_WORD, word_weights, words_of_tokens
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
    model.config.check_tokenizer(tokenizer.size)
    settings = AlignmentSettings(end=end)
    shape = (len(READINGS), model.config.decoder_layers, model.config.heads + 1)
    counts = _Counts(*np.zeros((3, *shape), dtype=np.int64))
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
        counts.add(attention, waiting.pop(attention.index), settings)
    if not counts.sure:
        raise ValueError(f"the {counts.pairs:,} pairs have no sure link to compare with")
    return AlignmentReport(
        settings=settings,
        attention=model.config.cross_attention,
        pairs=counts.pairs,
        normal=counts.scores("normal"),
        shifted=counts.scores("shifted"),
    )


@dataclass(frozen=True)
class _Encoded:
    """A pair, and the word of each of its tokens."""

    pair: GoldPair
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]


@dataclass
class _Counts:
    """Links counted so far: ``[readings, layers, heads + 1]``, the layer's average as last head."""

    found: npt.NDArray[np.int64]
    found_sure: npt.NDArray[np.int64]
    found_possible: npt.NDArray[np.int64]
    sure: int = 0
    pairs: int = 0

    def add(
        self, attention: CrossAttention, encoded: _Encoded, settings: AlignmentSettings
    ) -> None:
        """Count the links of one pair, of all layers and heads at once."""
        pair = encoded.pair
        sources, targets = len(pair.source_words), len(pair.target_words)
        sure = _matrix(pair.gold.sure, targets, sources)
        possible = _matrix(pair.gold.possible, targets, sources)
        rows = np.arange(targets)
        for number, reading in enumerate(READINGS):
            weights = word_weights(
                attention.read(reading),
                encoded.target,
                np.append(encoded.source, sources),  # the end of the sentence, as a word for now
                target_count=targets,
                source_count=sources + 1,
            )
            weights = np.concatenate([weights, weights.mean(1, keepdims=True)], axis=1)
            end = weights[..., -1] if settings.end == "competes" else None
            best = best_source_words(weights[..., :-1], end)  # [layers, heads + 1, target words]
            self.found[number] += (best != NO_WORD).sum(-1)
            self.found_sure[number] += sure[rows, best].sum(-1)
            self.found_possible[number] += possible[rows, best].sum(-1)
        self.sure += len(pair.gold.sure)
        self.pairs += 1

    def scores(self, reading: Reading) -> AttentionScores:
        number = READINGS.index(reading)
        layers = [
            [
                AlignmentScore(found, self.sure, found_sure, found_possible)
                for found, found_sure, found_possible in zip(*heads, strict=True)
            ]
            for heads in zip(
                self.found[number].tolist(),
                self.found_sure[number].tolist(),
                self.found_possible[number].tolist(),
                strict=True,
            )
        ]
        return AttentionScores(
            heads=tuple(tuple(scores[:-1]) for scores in layers),
            layers=tuple(scores[-1] for scores in layers),
        )


def _matrix(links: Links, targets: int, sources: int) -> npt.NDArray[np.bool_]:
    """``[target words, source words + 1]``; the last column, that of `NO_WORD`, has no link."""
    matrix = np.zeros((targets, sources + 1), dtype=np.bool_)
    for source, target in links:
        matrix[target, source] = True
    return matrix

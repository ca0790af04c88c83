"""Links of all layers and heads, counted against gold links pair by pair."""

import numpy as np
import numpy.typing as npt

from relakit.analysis.alignment import (
    READINGS,
    AlignmentScore,
    GoldAlignment,
    Links,
    Reading,
)
from relakit.analysis.alignment_report import AlignmentReport, AlignmentSettings, AttentionScores
from relakit.analysis.analysis_pairs import AnalysisPair
from relakit.analysis.cross_attention import CrossAttention
from relakit.analysis.word_links import word_links
from relakit.analysis.words import NO_WORD, Integers


class AlignmentCounts:
    """Links counted so far: ``[readings, layers, heads + 1]``, the layer's average as last head."""

    def __init__(self, layers: int, heads: int, settings: AlignmentSettings) -> None:
        shape = (len(READINGS), layers, heads + 1)
        self.settings = settings
        self.found = np.zeros(shape, dtype=np.int64)
        self.found_sure = np.zeros(shape, dtype=np.int64)
        self.found_possible = np.zeros(shape, dtype=np.int64)
        self.sure = 0
        self.pairs = 0

    def add(
        self,
        attention: CrossAttention,
        pair: AnalysisPair,
        gold: GoldAlignment,
        source_token_words: Integers,
        target_token_words: Integers,
    ) -> None:
        """Count the links of one pair, of all layers and heads at once.

        The last two arguments are the word of each token, as `words_of_tokens` gives it.
        """
        sources, targets = len(pair.source_words), len(pair.target_words)
        sure = _matrix(gold.sure, targets, sources)
        possible = _matrix(gold.possible, targets, sources)
        best = word_links(
            attention.weights,
            source_token_words,
            target_token_words,
            source_count=sources,
            target_count=targets,
            end=self.settings.end,
        )
        rows = np.arange(targets)
        self.found += (best != NO_WORD).sum(-1)
        self.found_sure += sure[rows, best].sum(-1)
        self.found_possible += possible[rows, best].sum(-1)
        self.sure += len(gold.sure)
        self.pairs += 1

    def report(self, attention: str) -> AlignmentReport:
        """The scores; ``attention`` is the name of the model's cross-attention.

        Raises:
            ValueError: there are no sure links.
        """
        if not self.sure:
            raise ValueError(f"the {self.pairs:,} pairs have no sure link to compare with")
        return AlignmentReport(
            settings=self.settings,
            attention=attention,
            pairs=self.pairs,
            normal=self._scores("normal"),
            shifted=self._scores("shifted"),
        )

    def _scores(self, reading: Reading) -> AttentionScores:
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

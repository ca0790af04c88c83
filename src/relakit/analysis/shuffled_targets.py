"""Null attention of targets with a wrong source, compared with their own source (Figure 6)."""

import statistics

import torch
from torch import Tensor

from relakit.analysis.attention_pass import AttentionBatch
from relakit.analysis.rates import ShareTotal, head_values
from relakit.analysis.results import Interval, ShuffledResult
from relakit.analysis.sparsity import null_counts, null_share
from relakit.attention_kinds import AttentionKind
from relakit.model import ModelConfig

_KINDS: tuple[AttentionKind, ...] = ("decoder", "cross")


class ShuffledTotals:
    """The totals that `ShuffledResult` is computed from.

    Each pair comes twice, with its own source first; those null rates are kept in between.
    """

    def __init__(self, config: ModelConfig) -> None:
        shape = config.decoder_layers, config.heads
        self.pairs = 0
        self.null = {kind: ShareTotal(*shape) for kind in _KINDS}
        self.gap = MeanTotal(config.decoder_layers)
        self._true_rates: dict[int, Tensor] = {}

    def add(self, batch: AttentionBatch) -> None:
        rates = sentence_null_rates(batch)
        if not batch.is_shuffled:
            self._true_rates.update(zip(batch.indices, rates, strict=True))
            return
        own = torch.stack([self._true_rates.pop(index) for index in batch.indices])
        self.gap.add(rates - own)
        self.pairs += len(batch.indices)
        for kind in _KINDS:
            valid = batch.valid(kind)
            for layer, weights in enumerate(batch.layers[kind]):
                self.null[kind].add(null_share(weights, valid), layer)

    def result(self, confidence: float) -> ShuffledResult | None:
        """None if there were no shuffled batches."""
        if not self.pairs:
            return None
        return ShuffledResult(
            pairs=self.pairs,
            null_rate={kind: head_values(self.null[kind].rates()) for kind in _KINDS},
            cross_gap=self.gap.intervals(confidence),
        )


def sentence_null_rates(batch: AttentionBatch) -> Tensor:
    """Null rates of each pair's cross-attention, mean over heads: ``[pairs, layers]``, float64."""
    null = null_counts(batch.layers["cross"], batch.valid("cross"))
    return null.sum(-1).double() / (null.size(-1) * batch.target_sizes[:, None])


class MeanTotal:
    """Running mean and variance of ``size`` numbers."""

    def __init__(self, size: int) -> None:
        self.count = 0
        self.mean = torch.zeros(size, dtype=torch.float64)
        self.squares = torch.zeros(size, dtype=torch.float64)
        """Sum of squared distances from the mean"""

    def add(self, values: Tensor) -> None:
        """Add ``[count, size]`` numbers."""
        # Use each group's own mean first: sums of squares minus squares of sums would cancel.
        count, mean = values.size(0), values.mean(0)
        distance, total = mean - self.mean, self.count + count
        self.squares += (values - mean).square().sum(0)
        self.squares += distance.square() * self.count * count / total
        self.mean += distance * count / total
        self.count = total

    def intervals(self, confidence: float) -> tuple[Interval, ...]:
        """Intervals of the means, by normal approximation; needs at least two rows of numbers."""
        quantile = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
        widths = quantile * (self.squares / (self.count - 1) / self.count).sqrt()
        return tuple(
            Interval(mean=mean, low=mean - width, high=mean + width)
            for mean, width in zip(self.mean.tolist(), widths.tolist(), strict=True)
        )

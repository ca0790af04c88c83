"""Confidence intervals of alignment error rates, by bootstrap over sentence pairs. No torch here.

The pairs are drawn many times, with replacement, and everything is recomputed from the links of the
drawn pairs, including the choice of the best heads.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from relakit.analysis.estimate import CONFIDENCE, Estimate, check_confidence
from relakit.analysis.links import READINGS, EndWeight
from relakit.analysis.pair_links import PairLinks
from relakit.analysis.settings import BOOTSTRAP_SEED
from relakit.metrics.settings import SAMPLES

_Floats = npt.NDArray[np.float64]
_BLOCK: Final = 1 << 22
"""The most draw counts, one per pair and sample, in memory at once (32 MiB), or one sample's."""


@dataclass(frozen=True, kw_only=True)
class BootstrapSettings:
    """What the intervals depend on, besides the pairs."""

    samples: int = SAMPLES
    """How many times the pairs are drawn"""
    seed: int = BOOTSTRAP_SEED
    confidence: float = CONFIDENCE
    """Share of the samples inside an interval; as many lie below it as above"""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples must be at least 1, got {self.samples}")
        check_confidence(self.confidence)


@dataclass(frozen=True, kw_only=True)
class ReadingEstimates:
    """Error rates for one reading of attention, or their differences between two models."""

    aol: Estimate
    """Mean over layers of the layer's average attention"""
    aoh: Estimate
    """Mean over layers of the layer's best head"""
    best_head: Estimate
    """The best head of all"""


@dataclass(frozen=True, kw_only=True)
class AlignmentEstimates:
    """Error rates with confidence intervals, or their differences between two models."""

    bootstrap: BootstrapSettings
    end: EndWeight
    pairs: int
    normal: ReadingEstimates
    shifted: ReadingEstimates


def bootstrap_alignment(
    links: PairLinks, settings: BootstrapSettings | None = None
) -> AlignmentEstimates:
    """The error rates of a model's cross-attention.

    Each sample chooses its own best heads, which favours heads that are lucky in it: the intervals
    of `aoh` and `best_head` lie a little too low.

    Args:
        links: from `count_pair_links`.
        settings: None for the defaults.
    """
    settings = settings or BootstrapSettings()
    return _estimates(links, _summaries(links, settings), settings)


def compare_alignments(
    first: PairLinks, second: PairLinks, settings: BootstrapSettings | None = None
) -> AlignmentEstimates:
    """The first model's error rates minus the second's, both on the same samples of pairs.

    The first model aligns better where the interval lies below 0.

    Raises:
        ValueError: the two are for different pairs, or treat the end of sentences differently.
    """
    ends = first.result.settings.end, second.result.settings.end
    if ends[0] != ends[1]:
        raise ValueError(
            f"the first model's end-of-sentence weight is {ends[0]!r}, the second's {ends[1]!r}: "
            "compare counts of one kind"
        )
    same_pairs = np.array_equal(first.indices, second.indices)
    if not same_pairs or not np.array_equal(first.sure, second.sure):
        raise ValueError(
            f"the models were not aligned on the same pairs: the first has {len(first.sure):,} "
            f"pairs with {first.sure.sum():,} sure links, the second {len(second.sure):,} with "
            f"{second.sure.sum():,}; count the links of both on the same pairs and gold links"
        )
    settings = settings or BootstrapSettings()
    differences = _summaries(first, settings) - _summaries(second, settings)
    return _estimates(first, differences, settings)


def drawn_sums(counts: npt.NDArray[np.integer], settings: BootstrapSettings) -> _Floats:
    """``[samples, ...]``: for each sample the sum of its pairs' counts, ``[pairs, ...]``.

    The same seed draws the same pairs. Samples are drawn in blocks, so that memory does not grow
    with the number of samples times the number of pairs; sums of integers are exact in any block.
    """
    pairs = len(counts)
    flat = counts.reshape(pairs, -1).astype(np.float64)
    random = np.random.default_rng(settings.seed)
    shares = np.full(pairs, 1 / pairs)
    sums = np.empty((settings.samples, flat.shape[1]))
    block = max(1, _BLOCK // pairs)
    for first in range(0, settings.samples, block):
        part = sums[first : first + block]
        # The sums over the drawn pairs are a matrix product.
        part[:] = random.multinomial(pairs, shares, size=len(part)).astype(np.float64) @ flat
    return sums.reshape(-1, *counts.shape[1:])


def _summaries(links: PairLinks, settings: BootstrapSettings) -> _Floats:
    """``[1 + samples, readings, 3]``: AoL, AoH and the best head's error rate; the first row is for
    the original pairs.

    Samples without a sure link, which can occur with very few pairs, are left out: they leave
    nothing to compare with.
    """
    found, found_sure, found_possible = links.links.swapaxes(0, 1).astype(np.int64)
    shape, sure = found.shape[1:], links.sure[:, None]
    parts, wholes = (some.reshape(len(found), -1) for some in (found_sure + found_possible, found))
    counts = np.concatenate([parts, wholes + sure, sure], axis=1)
    sums = np.concatenate([counts.sum(0, keepdims=True), drawn_sums(counts, settings)])
    known = sums[sums[:, -1] > 0, :-1]
    parts, wholes = known.reshape(len(known), 2, *shape).swapaxes(0, 1)
    rates = 1 - parts / wholes  # [1 + samples, readings, layers, heads + 1]
    best = rates[..., :-1].min(-1)
    return np.stack([rates[..., -1].mean(-1), best.mean(-1), best.min(-1)], axis=-1)


def interval_ends(samples: _Floats, confidence: float) -> tuple[_Floats, _Floats]:
    """The bounds that enclose this share of the samples, which are on the first axis."""
    outside = (1 - confidence) / 2
    low, high = np.quantile(samples, [outside, 1 - outside], axis=0)
    return low, high


def _estimates(
    links: PairLinks, summaries: _Floats, settings: BootstrapSettings
) -> AlignmentEstimates:
    """The estimates from summaries ``[1 + samples, readings, 3]``."""
    value, samples = summaries[0], summaries[1:]
    if not len(samples):
        raise ValueError(
            f"none of the {settings.samples} samples has a sure link; draw more samples, or give "
            f"more than {len(links.sure)} pairs"
        )
    low, high = interval_ends(samples, settings.confidence)

    def estimates(reading: int) -> ReadingEstimates:
        aol, aoh, best_head = (
            Estimate(value=v, low=lowest, high=highest)
            for v, lowest, highest in zip(
                *(numbers[reading].tolist() for numbers in (value, low, high)), strict=True
            )
        )
        return ReadingEstimates(aol=aol, aoh=aoh, best_head=best_head)

    normal, shifted = map(estimates, range(len(READINGS)))
    return AlignmentEstimates(
        bootstrap=settings,
        end=links.result.settings.end,
        pairs=len(links.sure),
        normal=normal,
        shifted=shifted,
    )

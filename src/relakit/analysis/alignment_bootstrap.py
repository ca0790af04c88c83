"""Confidence intervals of alignment error rates, by bootstrap over sentence pairs. No torch here.

The pairs are drawn many times, with replacement, and everything is computed anew from the links of
the drawn pairs, the choice of the best heads too.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relakit.analysis.estimate import CONFIDENCE, Estimate, check_confidence
from relakit.analysis.links import READINGS, EndWeight
from relakit.analysis.pair_links import PairLinks
from relakit.metrics.settings import SAMPLES

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class BootstrapSettings:
    """What the intervals depend on, besides the pairs."""

    samples: int = SAMPLES
    """How often the pairs are drawn"""
    seed: int = 1
    confidence: float = CONFIDENCE
    """Share of the samples in an interval; as many lie below as above"""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples must be at least 1, got {self.samples}")
        check_confidence(self.confidence)


@dataclass(frozen=True, kw_only=True)
class ReadingEstimates:
    """Error rates of one reading of attention, or differences between two models'."""

    aol: Estimate
    """Mean over layers of the layer's average attention"""
    aoh: Estimate
    """Mean over layers of the layer's best head"""
    best_head: Estimate
    """The best head of all"""


@dataclass(frozen=True, kw_only=True)
class AlignmentEstimates:
    """Error rates with confidence intervals, or differences between two models'."""

    bootstrap: BootstrapSettings
    end: EndWeight
    pairs: int
    normal: ReadingEstimates
    shifted: ReadingEstimates


def bootstrap_alignment(
    links: PairLinks, settings: BootstrapSettings | None = None
) -> AlignmentEstimates:
    """The error rates of a model's cross-attention.

    A sample chooses its own best heads, which favours those that are lucky in it: intervals of
    `aoh` and `best_head` lie a little low.

    Args:
        links: of `count_pair_links`.
        settings: None for the defaults.
    """
    settings = settings or BootstrapSettings()
    draws = _draws(links, settings)
    return _estimates(links, _summaries(links, draws), settings)


def compare_alignments(
    first: PairLinks, second: PairLinks, settings: BootstrapSettings | None = None
) -> AlignmentEstimates:
    """The first model's error rates minus the second's, both on the same samples of pairs.

    The first model aligns better where the interval lies below 0.

    Raises:
        ValueError: the two are not of the same pairs, or treat the end of sentences differently.
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
    draws = _draws(first, settings)
    differences = _summaries(first, draws) - _summaries(second, draws)
    return _estimates(first, differences, settings)


def _draws(links: PairLinks, settings: BootstrapSettings) -> _Floats:
    """``[1 + samples, pairs]``: how often each pair was drawn; the first row is the pairs as they
    are.

    Samples without a sure link, which may come from very few pairs, are left out: nothing can be
    compared with them.
    """
    pairs = len(links.sure)
    random = np.random.default_rng(settings.seed)
    samples = random.multinomial(pairs, np.full(pairs, 1 / pairs), size=settings.samples)
    draws = np.concatenate([np.ones((1, pairs)), samples])
    return draws[draws @ links.sure > 0]


def _summaries(links: PairLinks, draws: _Floats) -> _Floats:
    """``[1 + samples, readings, 3]``: AoL, AoH and the best head's error rate."""
    found, found_sure, found_possible = links.links.swapaxes(0, 1).astype(np.float64)
    whole = found + links.sure[:, None, None, None]
    # The sums over the drawn pairs are products of matrices.
    parts, wholes = (
        (draws @ counts.reshape(len(counts), -1)).reshape(-1, *counts.shape[1:])
        for counts in (found_sure + found_possible, whole)
    )
    rates = 1 - parts / wholes  # [1 + samples, readings, layers, heads + 1]
    best = rates[..., :-1].min(-1)
    return np.stack([rates[..., -1].mean(-1), best.mean(-1), best.min(-1)], axis=-1)


def _estimates(
    links: PairLinks, summaries: _Floats, settings: BootstrapSettings
) -> AlignmentEstimates:
    """From ``[1 + samples, readings, 3]``."""
    value, samples = summaries[0], summaries[1:]
    if not len(samples):
        raise ValueError(
            f"none of the {settings.samples} samples has a sure link; draw more samples, or give "
            f"more than {len(links.sure)} pairs"
        )
    outside = (1 - settings.confidence) / 2
    low, high = np.quantile(samples, [outside, 1 - outside], axis=0)

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

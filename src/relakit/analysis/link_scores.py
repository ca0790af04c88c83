"""Scores of given links against gold links, with confidence intervals. No torch here."""

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

from relakit.analysis.aer import AlignmentScore
from relakit.analysis.alignment_bootstrap import BootstrapSettings, drawn_sums, interval_ends
from relakit.analysis.estimate import Estimate
from relakit.analysis.gold import GoldAlignment
from relakit.analysis.link_file import LinkFile
from relakit.analysis.links import Links


@dataclass(frozen=True, kw_only=True)
class LinkScores:
    """How good links are; the intervals come from resampling sentence pairs."""

    counts: AlignmentScore
    pairs: int
    aer: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate


def score_link_files(
    gold: LinkFile, found: LinkFile, settings: BootstrapSettings | None = None
) -> LinkScores:
    """Score a file of links.

    Raises:
        ValueError: there is a bad line, the files differ in length, or no gold link is sure.
    """
    return score_links(_paired(gold, found), settings, name=str(gold.path))


def _paired(gold: LinkFile, found: LinkFile) -> Iterator[tuple[GoldAlignment, Links]]:
    counts = [0, 0]
    for links, right in gold.beside(found.read(), found.path):
        counts = [counts[0] + (right is not None), counts[1] + (links is not None)]
        if links is not None and right is not None:
            # Links marked as possible count as found, too.
            yield right, links.possible
    if counts[0] != counts[1]:
        raise ValueError(
            f"{gold.path} has the links of {counts[0]:,} pairs, {found.path} of {counts[1]:,}: "
            "line n of one must be about the same pair as line n of the other"
        )


def score_links(
    pairs: Iterable[tuple[GoldAlignment, Links]],
    settings: BootstrapSettings | None = None,
    *,
    name: str = "gold",
) -> LinkScores:
    """Score links counted over all pairs, and again over each bootstrap sample of the pairs.

    Args:
        pairs: the gold links of each pair, and the links to judge.
        settings: how the intervals are computed; None for the defaults.
        name: what error messages call the gold links.

    Raises:
        ValueError: there is no sure link.
    """
    settings = settings or BootstrapSettings()
    rows = [astuple(AlignmentScore.of(found, gold)) for gold, found in pairs]
    counts = np.array(rows, dtype=np.int64).reshape(-1, 4)
    if not counts[:, 1].any():
        raise ValueError(f"{name} has no sure link in {len(rows):,} pairs: nothing can be scored")
    drawn = drawn_sums(counts, settings).astype(np.int64)
    samples = [AlignmentScore(*row) for row in drawn.tolist() if row[1]]
    whole = AlignmentScore(*counts.sum(0).tolist())

    def estimate(score: str) -> Estimate:
        values = np.array([getattr(sample, score) for sample in samples])
        return _estimate(getattr(whole, score), values, settings.confidence)

    return LinkScores(
        counts=whole,
        pairs=len(rows),
        aer=estimate("aer"),
        precision=estimate("precision"),
        recall=estimate("recall"),
        f1=estimate("f1"),
    )


def _estimate(value: float, samples: npt.NDArray[np.float64], confidence: float) -> Estimate:
    known = samples[~np.isnan(samples)]  # precision is undefined where no link was found
    if not len(known):
        return Estimate(value=value, low=value, high=value)
    low, high = interval_ends(known, confidence)
    return Estimate(value=value, low=float(low), high=float(high))

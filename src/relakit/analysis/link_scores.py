"""Given links against gold ones: scores with confidence intervals. No torch here."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt

from relakit.analysis.aer import AlignmentScore
from relakit.analysis.alignment_bootstrap import BootstrapSettings
from relakit.analysis.estimate import Estimate
from relakit.analysis.gold import FirstWord, GoldAlignment, GoldFormatChoice, read_gold
from relakit.analysis.links import Links


@dataclass(frozen=True, kw_only=True)
class LinkScores:
    """What links are worth; the intervals are over sentence pairs."""

    counts: AlignmentScore
    pairs: int
    aer: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True, kw_only=True)
class LinkFile:
    """A file of links, and how to read it."""

    path: Path
    format: GoldFormatChoice = "auto"
    first: FirstWord | None = None
    """The number of a sentence's first word; None: the format's"""
    reverse: bool = False
    """It names the target word first"""
    option: str = "--gold"
    """That names it on the command line; options for its numbers begin like it"""

    def read(self) -> Iterator[GoldAlignment]:
        """The links of each pair; source first, from 0."""
        for links in read_gold(self.path, format=self.format, first=self.first):
            yield links.reversed() if self.reverse else links


def score_link_files(
    gold: LinkFile, found: LinkFile, settings: BootstrapSettings | None = None
) -> LinkScores:
    """Score a file of links.

    Raises:
        ValueError: a bad line, files of different lengths, or gold without a sure link.
    """
    return score_links(_paired(gold, found), settings, name=str(gold.path))


def _paired(gold: LinkFile, found: LinkFile) -> Iterator[tuple[GoldAlignment, Links]]:
    counts = [0, 0]
    for pair in zip_longest(gold.read(), found.read()):
        counts = [count + (links is not None) for count, links in zip(counts, pair, strict=True)]
        if pair[0] is not None and pair[1] is not None:
            # What is said to be possible was found, too.
            yield pair[0], pair[1].possible
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
    """Count links over all pairs, then divide; and again for each bootstrap sample of the pairs.

    Args:
        pairs: gold links and those to judge.
        settings: of the intervals; None for the defaults.
        name: of the gold links, in errors.

    Raises:
        ValueError: there is no sure link.
    """
    settings = settings or BootstrapSettings()
    rows = [
        (len(found), len(gold.sure), len(found & gold.sure), len(found & gold.possible))
        for gold, found in pairs
    ]
    counts = np.array(rows, dtype=np.int64).reshape(-1, 4)
    if not counts[:, 1].any():
        raise ValueError(f"{name} has no sure link in {len(rows):,} pairs: nothing can be scored")
    random = np.random.default_rng(settings.seed)
    drawn = random.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size=settings.samples)
    samples = [AlignmentScore(*row) for row in (drawn @ counts).tolist() if row[1]]
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
    outside = (1 - confidence) / 2
    known = samples[~np.isnan(samples)]  # precision is not known where no link was found
    if not len(known):
        return Estimate(value=value, low=value, high=value)
    low, high = np.quantile(known, [outside, 1 - outside])
    return Estimate(value=value, low=float(low), high=float(high))

"""Pairs to look at: from both ends of the ranking, and from around the cut. No torch here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from relakit.clean.cut import Cut
from relakit.clean.filter_files import why_rejected
from relakit.clean.measures import Look
from relakit.clean.score_table import ScoreBlock
from relakit.data.parallel_files import NumberedPair

PER_GROUP: Final = 25
EDGE: Final = 0.05
"""Share of all pairs at either end that the sample of that end is drawn from."""
MOST_CHARACTERS: Final = 1500
"""Most characters shown of a side"""
_Places: TypeAlias = npt.NDArray[np.int64]
BEST, ABOVE, BELOW, WORST = "best", "just kept", "just rejected", "worst"
GROUPS: Final = (BEST, ABOVE, BELOW, WORST)


@dataclass(frozen=True)
class Sample:
    """A pair that is shown."""

    group: str
    line: int
    kept: bool
    value: float
    badness: float
    reason: str
    """Why it was rejected; empty if it was not"""
    source: str
    target: str
    unsupported: Sequence[int]
    """Unsupported words of the target, from 0"""
    uncovered: Sequence[int]
    """Uncovered words of the source"""
    worst: int | None
    """The word of the target that the model expected least"""
    scores: Mapping[str, float]
    shares: Mapping[str, float]
    """How likely it is to be clean or each kind of noise, if there is a calibration"""


class SampleCollector:
    """Chooses pairs by their ranks, and collects them as they come by."""

    def __init__(self, cut: Cut, *, seed: int = 1) -> None:
        self._cut = cut
        self._groups = choose_places(cut, seed)
        self.samples: Final[list[Sample]] = []

    def add(self, pairs: Sequence[NumberedPair], block: ScoreBlock, look: Look) -> None:
        """Collect the chosen pairs of a block."""
        for place, pair in enumerate(pairs):
            group = self._groups.get(block.start + place)
            if group is not None:
                self.samples.append(self._sample(group, pair, block, place, look))

    def _sample(
        self, group: str, pair: NumberedPair, block: ScoreBlock, place: int, look: Look
    ) -> Sample:
        kept = bool(self._cut.kept[block.start + place])
        cells = block.cells(place)
        worst = _words(cells.get("worst_word"))
        return Sample(
            group=group,
            line=pair.number,
            kept=kept,
            value=look.value(place),
            badness=float(self._cut.badness[block.start + place]),
            reason="" if kept else why_rejected(block, place, look, self._cut)[2],
            source=_shortened(pair.source),
            target=_shortened(pair.target),
            unsupported=_words(cells.get("unsupported")),
            uncovered=_words(cells.get("uncovered")),
            worst=worst[0] if worst else None,
            scores={name: cell for name, cell in cells.items() if isinstance(cell, float)},
            shares=look.shares(place),
        )


def choose_places(cut: Cut, seed: int) -> dict[int, str]:
    """The group of each pair that is shown, by its place in the corpus."""
    places = np.flatnonzero(~np.isnan(cut.badness))
    order = places[np.argsort(cut.badness[places], kind="stable")]
    is_kept = cut.kept[order]
    kept, rejected = order[is_kept], order[~is_kept]
    edge = max(PER_GROUP, round(EDGE * len(order)))
    draw = np.random.default_rng(seed)
    chosen: dict[int, str] = {}
    for group, some in (
        (ABOVE, kept[-PER_GROUP:]),
        (BELOW, rejected[:PER_GROUP]),
        (BEST, _drawn(kept[:edge], draw)),
        (WORST, _drawn(rejected[-edge:], draw)),
    ):
        for place in some.tolist():
            chosen.setdefault(place, group)
    return chosen


def _drawn(places: _Places, draw: np.random.Generator) -> _Places:
    return draw.permutation(places)[:PER_GROUP]


def _words(cell: object) -> list[int]:
    """The numbers of words in a cell such as ``3:Hund 5:alte``."""
    if not isinstance(cell, str):
        return []
    return [int(entry.partition(":")[0]) for entry in cell.split(" ") if entry]


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + " …"

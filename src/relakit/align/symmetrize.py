"""Merge the links of two directions into one set. No torch here.

A translation model gives each *target* word at most one link. A second model, of the other
direction, gives each source word at most one; together they can link a word with several.
"""

from bisect import insort
from collections.abc import Callable, Iterator, Set
from typing import Final

from relakit.align.settings import SYMMETRIZATIONS, Symmetrization
from relakit.analysis.links import Link, Links
from relakit.known_names import known_name

_NEIGHBOURS: Final = ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))
"""Their distance in source and target words, in the order in which they are looked at."""


def symmetrize(forward: Set[Link], backward: Set[Link], method: Symmetrization) -> Links:
    """Merge the links of two directions into one set (Koehn, Och and Marcu 2003).

    Links are looked at in the order of target words, then of source words, and count from the
    moment they are added, as in the authors' pseudocode.

    Args:
        forward: links of the model that translates source to target.
        backward: links of the other model, also with the source word first.
        method: see `Symmetrization`.

    Raises:
        ValueError: there is no such method.
    """
    known_name("method", method, SYMMETRIZATIONS)
    both = frozenset(forward) & backward
    if method == "intersection":
        return both
    either = frozenset(forward) | backward
    if method == "union":
        return either
    grown = _Growing(both)
    grown.along_the_diagonal(either)
    if method != "grow-diag":
        is_free = grown.either_word_is_free if method == "grow-diag-final" else grown.both_are_free
        for direction in (forward, backward):
            grown.add_where(is_free, direction)
    return frozenset(grown.links)


class _Growing:
    """Links, and the words that have one."""

    def __init__(self, links: Links) -> None:
        self.links = set(links)
        self.sources = {source for source, _ in links}
        self.targets = {target for _, target in links}

    def either_word_is_free(self, link: Link) -> bool:
        return link[0] not in self.sources or link[1] not in self.targets

    def both_are_free(self, link: Link) -> bool:
        return link[0] not in self.sources and link[1] not in self.targets

    def add_where(self, allowed: Callable[[Link], bool], candidates: Set[Link]) -> None:
        for link in sorted(candidates - self.links, key=_in_order):
            if allowed(link):
                self._add(link)

    def along_the_diagonal(self, candidates: Links) -> None:
        """Add candidates next to a link that reach a word without one, until there are none left.

        An added link is looked at in the same pass if it comes later in the order.
        """
        ordered = sorted(self.links, key=_in_order)
        count = -1
        while count != len(ordered):
            count, place = len(ordered), 0
            while place < len(ordered):
                link = ordered[place]
                for neighbour in _beside(link):
                    is_new = neighbour in candidates and neighbour not in self.links
                    if is_new and self.either_word_is_free(neighbour):
                        self._add(neighbour)
                        insort(ordered, neighbour, key=_in_order)
                        place += _in_order(neighbour) < _in_order(link)
                place += 1

    def _add(self, link: Link) -> None:
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])


def _beside(link: Link) -> Iterator[Link]:
    source, target = link
    return ((source + down, target + right) for down, right in _NEIGHBOURS)


def _in_order(link: Link) -> Link:
    """Sort key: by the target word, then by the source word."""
    return link[1], link[0]

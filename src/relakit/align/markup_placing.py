"""Where markup goes in a translation, by the links between its words and the source's.

- A pair of tags encloses the smallest span of target words that has all words linked to the source
  words that it enclosed. A pair around the whole source goes around the whole translation. A pair
  without links is lost. A link between a word and a punctuation mark does not count.
- Pairs stay inside the pairs that enclosed them. If two other pairs cross, one is widened until it
  encloses the other: the one that takes in fewer words that way.
- A run of single pieces stays with its neighbour in the source: after the target word linked with
  the word before it, or before the target word linked with the word after it. A run before the
  first word stays before the first, and a run after the last word stays after the last. A run does
  not leave the pair that it was in.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from relakit.align.markup import CLOSING, OPENING, MarkedText, Run
from relakit.align.untangling import untangle
from relakit.analysis.links import Link
from relakit.analysis.word_map import Span, split_words

_MARKS: Final = CLOSING | OPENING


@dataclass(frozen=True)
class Sentence:
    """A text, and where its words are; everything but spaces belongs to a word."""

    text: str
    words: Sequence[Span]

    @classmethod
    def split(cls, text: str) -> "Sentence":
        """Split a text; marks at the edges of words become words, so that tags can go between."""
        return cls(text, split_words(text))

    def word(self, number: int) -> str:
        start, end = self.words[number]
        return self.text[start:end]


class RunPlace(NamedTuple):
    """Where a run goes."""

    gap: int
    """It goes before the target word with this number"""
    follows: bool
    """Whether it belongs to the word before it, rather than to the word after it"""
    offset: int = 0
    """Unless 0, it goes inside the target word instead, after this many of its characters"""


@dataclass(frozen=True)
class Layout:
    """Where all markup that has a place goes."""

    spans: dict[int, Span]
    """The target words of each pair, by the number of the pair"""
    places: dict[int, RunPlace]
    """The place of each run, by the number of the run"""
    parents: dict[int, int | None]
    """For each run, the innermost pair around it that has a place"""


def lay_out(
    marked: MarkedText, source: Sentence, target: Sentence, links: Iterable[Link]
) -> Layout:
    """Find places for the markup of a source, as far as there are any.

    Args:
        marked: the source.
        source: the words of ``marked.text``.
        target: the translation, which must have words.
        links: the links between these words.
    """
    linked = _LinkedWords(_between_equals(links, source, target), len(source.words))
    edges = [start for start, _ in source.words], [end for _, end in source.words]
    ranges = [
        (bisect_right(edges[1], pair.first), bisect_left(edges[0], pair.last))
        for pair in marked.pairs
    ]
    spans = _spans(ranges, linked, source, target)
    placed = _placed_parents(marked, spans)
    runs = _Runs(source, target, linked, edges)
    places: dict[int, RunPlace] = {}
    parents = {
        number: None if run.parent is None else placed[run.parent]
        for number, run in enumerate(marked.runs)
    }
    for number, run in enumerate(marked.runs):
        parent = parents[number]
        everything = (0, len(source.words)), (0, len(target.words))
        own, span = everything if parent is None else (ranges[parent], spans[parent])
        if (place := runs.place(run, own, span)) is not None:
            places[number] = place
    return Layout(spans, places, parents)


def _between_equals(links: Iterable[Link], source: Sentence, target: Sentence) -> Iterator[Link]:
    """Drop links between a word and a punctuation mark: they would make a tag enclose the mark."""
    sides = [
        [_MARKS.issuperset(text.word(number)) for number in range(len(text.words))]
        for text in (source, target)
    ]
    return ((s, t) for s, t in links if sides[0][s] == sides[1][t])


def _spans(
    ranges: Sequence[Span], linked: "_LinkedWords", source: Sentence, target: Sentence
) -> dict[int, Span]:
    """The target words of each pair that has links; ``ranges`` are the source words of pairs."""
    reach = cache(linked.reach)  # thousands of tags may enclose the same words
    found: dict[int, Span] = {}
    for number, words in enumerate(ranges):
        whole = words == (0, len(source.words))
        span = (0, len(target.words)) if whole else reach(*words)
        if span is not None:
            found[number] = span
    widened = untangle(found.values())
    return {number: widened[span] for number, span in found.items()}


def _placed_parents(marked: MarkedText, spans: dict[int, Span]) -> list[int | None]:
    """For each pair, the innermost pair with a place, from itself outwards."""
    placed: list[int | None] = []
    for number, pair in enumerate(marked.pairs):
        outer = None if pair.parent is None else placed[pair.parent]
        placed.append(number if number in spans else outer)
    return placed


class _LinkedWords:
    """The target words that each source word is linked with."""

    def __init__(self, links: Iterable[Link], count: int) -> None:
        self.targets: list[list[int]] = [[] for _ in range(count)]
        for source, target in sorted(links):
            self.targets[source].append(target)
        self.linked = [word for word, targets in enumerate(self.targets) if targets]

    def reach(self, first: int, last: int) -> Span | None:
        """The smallest span with all target words linked to these source words, if any."""
        found = [target for targets in self.targets[first:last] for target in targets]
        return (min(found), max(found) + 1) if found else None

    def up_to(self, word: int) -> int | None:
        """The nearest word with a link, going left from this one."""
        place = bisect_right(self.linked, word)
        return self.linked[place - 1] if place else None

    def from_on(self, word: int) -> int | None:
        """The nearest word with a link, going right from this one."""
        place = bisect_left(self.linked, word)
        return self.linked[place] if place < len(self.linked) else None


@dataclass(frozen=True)
class _Runs:
    """Finds places for runs."""

    source: Sentence
    target: Sentence
    linked: _LinkedWords
    edges: tuple[Sequence[int], Sequence[int]]
    """Where source words start, and where they end"""

    def place(self, run: Run, own: Span, span: Span) -> RunPlace | None:
        """Where a run goes; None if there is no link to tell.

        Args:
            run: a run of the source.
            own: the source words of the pair that it is in.
            span: the target words of that pair.
        """
        starts, ends = self.edges
        before, after = bisect_right(ends, run.at) - 1, bisect_left(starts, run.at)
        if after - before == 2:  # inside the word between them
            word = before + 1
            if (same := self._same_word(word, run.at - starts[word], span)) is not None:
                return same
            place = self._beside_linked(word, after, follows=True)
        elif before < 0 or after == len(starts):
            place = RunPlace(0 if before < 0 else len(self.target.words), before >= 0)
        else:
            place = self._beside_linked(before, after, follows=_follows(run, before, after, own))
        if place is None:
            return None
        return place._replace(gap=min(max(place.gap, span[0]), span[1]))

    def _same_word(self, word: int, offset: int, span: Span) -> RunPlace | None:
        """The same place in a target word with the same spelling, if there is one."""
        for target in self.linked.targets[word]:
            is_same = self.target.word(target) == self.source.word(word)
            if is_same and span[0] <= target < span[1]:
                return RunPlace(target, follows=True, offset=offset)
        return None

    def _beside_linked(self, before: int, after: int, *, follows: bool) -> RunPlace | None:
        """Beside the target word of the nearest source word that has one."""
        left, right = self.linked.up_to(before), self.linked.from_on(after)
        if left is None and right is None:
            return None
        if left is not None and right is not None:
            distances = before - left, right - after
            goes_left = follows if distances[0] == distances[1] else distances[0] < distances[1]
        else:
            goes_left = right is None
        if goes_left and left is not None:
            return RunPlace(self.linked.targets[left][-1] + 1, follows=True)
        assert right is not None
        return RunPlace(self.linked.targets[right][0], follows=False)


def _follows(run: Run, before: int, after: int, own: Span) -> bool:
    """Whether a run belongs to the word before it, rather than to the word after it."""
    has_before, has_after = own[0] <= before, after < own[1]
    if has_before != has_after:  # the other word is outside the pair that the run is in
        return has_before
    if run.separates:  # a line break: better after a comma than before it
        return False
    return not run.space_before or run.space_after

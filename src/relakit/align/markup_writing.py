"""Write a translation with its markup.

Tags of pairs touch the words that they enclose; runs have spaces around them as in the source.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from relakit.align.markup import MarkedText, values_by_order
from relakit.align.markup_placing import Layout, Sentence, lay_out
from relakit.analysis.links import Link


@dataclass(frozen=True)
class MarkedTranslation:
    """A translation with its markup."""

    text: str
    lost: tuple[str, ...]
    """Tags, placeholders and entities for which there was no place, in the order of the source"""
    reordered: tuple[str, ...] = ()
    """Everything that takes values by order, such as ``%s``, also in tags, in the order of the text
    if that is not the order of the source"""


def put_back(
    marked: MarkedText, source: Sentence, target: Sentence, links: Iterable[Link]
) -> MarkedTranslation:
    """Put the markup of a source into its translation.

    Args:
        marked: the source.
        source: the words of ``marked.text``.
        target: the translation.
        links: the links between these words.
    """
    if not target.words:  # there are no words to place markup by
        text = "".join(marked.pieces) if source.words else marked.line
        return MarkedTranslation(text, ())
    writing = _Writing(marked, target, lay_out(marked, source, target, links))
    text = writing.text()
    written = frozenset(writing.written)
    lost = tuple(piece for number, piece in enumerate(marked.pieces) if number not in written)
    return MarkedTranslation(text, lost, _reordered(marked, writing.written))


def _reordered(marked: MarkedText, written: Sequence[int]) -> tuple[str, ...]:
    """What takes values by order in pieces written in this order; nothing if all is in order."""
    values = {number: values_by_order(marked.pieces[number]) for number in written}
    numbers = [number for number in written if values[number]]
    if numbers == sorted(numbers):
        return ()
    return tuple(value for number in numbers for value in values[number])


class _Piece(NamedTuple):
    """A piece to be written between two words."""

    kind: Literal["open", "close", "run"]
    text: str
    numbers: Iterable[int]
    """The numbers of the source pieces that it consists of"""
    space_before: bool = False
    space_after: bool = False
    separates: bool = False
    stands_off: tuple[bool, bool] = (False, False)
    follows: bool = True


class _Writing:
    """Writes one translation, from its first word to its last."""

    def __init__(self, marked: MarkedText, target: Sentence, layout: Layout) -> None:
        self.marked = marked
        self.target = target
        self.spans = layout.spans
        self.opening: defaultdict[int, list[int]] = defaultdict(list)
        """Pairs that open before a word, the outer ones first"""
        self.closing: defaultdict[int, list[int]] = defaultdict(list)
        """Pairs that close before a word, the inner ones first"""
        self.after_tag: defaultdict[int, list[_Piece]] = defaultdict(list)
        """Runs at the beginning of a pair"""
        self.before_tag: defaultdict[int, list[_Piece]] = defaultdict(list)
        """Runs at the end of a pair"""
        self.between: defaultdict[int, list[_Piece]] = defaultdict(list)
        """Runs before a word that are not at the edge of a pair, or are outside the pair"""
        self.within: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        """Runs inside a word: after which character, and the number of the run"""
        self.written: list[int] = []
        """The numbers of the source pieces written so far"""
        self.characters = marked.as_written(target.text)
        self._sort_tags()
        self._sort_runs(layout)

    def _sort_tags(self) -> None:
        def outer_first(number: int) -> tuple[int, int, int]:
            first, last = self.spans[number]
            return first, -last, number

        order = sorted(self.spans, key=outer_first)
        for number in order:
            self.opening[self.spans[number][0]].append(number)
        for number in reversed(order):
            self.closing[self.spans[number][1]].append(number)

    def _sort_runs(self, layout: Layout) -> None:
        for number, place in layout.places.items():
            run, parent = self.marked.runs[number], layout.parents[number]
            piece = _Piece(
                "run",
                run.text,
                run.numbers,
                run.space_before,
                run.space_after,
                run.separates,
                run.stands_off,
                place.follows,
            )
            if place.offset:
                self.within[place.gap].append((place.offset, number))
            elif parent is not None and place.gap == self.spans[parent][0]:
                self.after_tag[parent].append(piece)
            elif parent is not None and place.gap == self.spans[parent][1]:
                self.before_tag[parent].append(piece)
            else:
                self.between[place.gap].append(piece)

    def text(self) -> str:
        words = self.target.words
        starts, ends = [start for start, _ in words], [end for _, end in words]
        parts: list[str] = []
        for gap in range(len(words) + 1):
            left = ends[gap - 1] if gap else 0
            right = starts[gap] if gap < len(words) else len(self.target.text)
            parts.append(self._between_words(gap, left, right))
            if gap < len(words):
                parts.append(self._word(gap))
        return "".join(parts)

    def _word(self, number: int) -> str:
        done, end = self.target.words[number]
        start = done
        parts: list[str] = []
        for offset, run_number in sorted(self.within[number], key=lambda place: place[0]):
            run = self.marked.runs[run_number]
            self.written += run.numbers
            spaces = " " * run.space_before, " " * run.space_after
            parts += [self._text(done, start + offset), spaces[0], run.text, spaces[1]]
            done = start + offset
        return "".join([*parts, self._text(done, end)])

    def _text(self, start: int, end: int) -> str:
        return "".join(self.characters[start:end])

    def _between_words(self, gap: int, left: int, right: int) -> str:
        pieces = self._pieces(gap)
        self.written += [number for piece in pieces for number in piece.numbers]
        text, space = self.target.text, self.target.text[left:right]
        if not pieces:
            return space
        wanted = _wanted_spaces(pieces)
        if not space:
            # A mark that touches a word belongs there: no space between the mark and a run.
            is_first, is_last = gap == 0, gap == len(self.target.words)
            wanted[0] &= not is_first and (is_last or text[left - 1].isalnum())
            wanted[-1] &= not is_last and (is_first or text[right].isalnum())
        elif not any(wanted) and not any(piece.separates for piece in pieces):
            wanted[_usual_space(pieces)] = True
        _keep_off_words(pieces, text[left - 1 : left], text[right : right + 1], wanted)
        spaces = [(space or " ") * is_wanted for is_wanted in wanted]
        after = zip((piece.text for piece in pieces), spaces[1:], strict=True)
        return spaces[0] + "".join(part for both in after for part in both)

    def _pieces(self, gap: int) -> list[_Piece]:
        pieces: list[_Piece] = []
        for number in self.closing[gap]:
            pair = self.marked.pairs[number]
            tag = _Piece("close", pair.close, pair.numbers[1:])
            pieces += [*self.before_tag[number], tag]
        pieces += self.between[gap]
        for number in self.opening[gap]:
            pair = self.marked.pairs[number]
            tag = _Piece("open", pair.open, pair.numbers[:1])
            pieces += [tag, *self.after_tag[number]]
        return pieces


def _wanted_spaces(pieces: Sequence[_Piece]) -> list[bool]:
    """Whether the runs want a space before each piece, and after the last."""
    wanted = [False] * (len(pieces) + 1)
    for number, piece in enumerate(pieces):
        if piece.space_before:
            wanted[_left_of_opening(pieces, number)] = True
        if piece.space_after:
            wanted[_right_of_closing(pieces, number + 1)] = True
    return wanted


def _keep_off_words(pieces: Sequence[_Piece], before: str, after: str, wanted: list[bool]) -> None:
    """Ask for a space between a word and a run that must not touch it.

    Args:
        pieces: the pieces between two words.
        before: the last character of the word on the left, if there is one.
        after: the first character of the word on the right, if there is one.
        wanted: as `_wanted_spaces` returns it.
    """
    runs = [number for number, piece in enumerate(pieces) if piece.kind == "run"]
    if not runs:
        return
    first, last = runs[0], runs[-1]
    if before.isalnum() and pieces[first].stands_off[0] and not any(wanted[: first + 1]):
        wanted[_left_of_opening(pieces, first)] = True
    if after.isalnum() and pieces[last].stands_off[1] and not any(wanted[last + 1 :]):
        wanted[_right_of_closing(pieces, last + 1)] = True


def _usual_space(pieces: Sequence[_Piece]) -> int:
    """Where the space between two words goes if no run wants one."""
    runs = [number for number, piece in enumerate(pieces) if piece.kind == "run"]
    if not runs:
        return sum(piece.kind == "close" for piece in pieces)
    if pieces[runs[0]].follows:
        return _right_of_closing(pieces, runs[-1] + 1)
    return _left_of_opening(pieces, runs[0])


def _left_of_opening(pieces: Sequence[_Piece], place: int) -> int:
    """The place before any tags that open right before ``place``: these touch what follows."""
    while place and pieces[place - 1].kind == "open":
        place -= 1
    return place


def _right_of_closing(pieces: Sequence[_Piece], place: int) -> int:
    while place < len(pieces) and pieces[place].kind == "close":
        place += 1
    return place

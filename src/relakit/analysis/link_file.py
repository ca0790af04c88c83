"""Files of links, matched with what they are about. No torch here."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count as count_from_zero
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from relakit.amounts import number_with_noun
from relakit.analysis.gold import (
    FirstWord,
    GoldAlignment,
    GoldFormat,
    GoldFormatChoice,
    read_gold,
    resolve_format,
)

Row = TypeVar("Row")


@dataclass(frozen=True, kw_only=True)
class LinkFile:
    """A file of links, and how to read it."""

    path: Path
    format: GoldFormatChoice = "auto"
    first: FirstWord | None = None
    """The number of a sentence's first word; None: the format's default"""
    reverse: bool = False
    """Whether it names the target word first"""
    option: str = "--gold"
    """The command-line option that names it; the options for its numbers start with this"""

    @cached_property
    def known_format(self) -> GoldFormat:
        """The given format, or for ``auto`` the one that the file is in."""
        return resolve_format(self.path, self.format)

    @property
    def numbers_sentences(self) -> bool:
        """Whether it says which pair each link belongs to, instead of having a line per pair."""
        return self.known_format == "naacl"

    def read(self) -> Iterator[GoldAlignment]:
        """The links of each pair, source word first, counted from 0."""
        for links in read_gold(self.path, format=self.known_format, first=self.first):
            yield links.reversed() if self.reverse else links

    def beside(
        self, rows: Iterator[Row], source: Path
    ) -> Iterator[tuple[Row | None, GoldAlignment | None]]:
        """Each row with its links; None stands for what is missing, as in `zip_longest`.

        Nothing is missing in a file that numbers sentences, see `of_sentences`.
        """
        if self.numbers_sentences:
            yield from self.of_sentences(rows, source)
        else:
            yield from zip_longest(rows, self.read())

    def of_sentences(
        self, rows: Iterator[Row], source: Path
    ) -> Iterator[tuple[Row, GoldAlignment]]:
        """Each row with its links from a file that numbers sentences; the last rows may have none.

        Args:
            rows: one for each pair.
            source: the file that the rows come from.

        Raises:
            ValueError: there are links for a sentence that does not exist.
        """
        links = self.read()
        count = 0
        for row in rows:
            count += 1
            yield row, next(links, GoldAlignment(frozenset()))
        more = count_from_zero()
        deque(zip(links, more, strict=False), maxlen=0)  # there may be millions
        sentences = count + next(more)
        if sentences > count:
            raise ValueError(
                f"{source} has {number_with_noun(count, 'line')}, {self.path} has links of "
                f"sentence {sentences:,} (from 1); give the gold links of this source"
            )

    def place(self, number: int) -> str:
        """Where the links of a pair, counted from 1, are in the file, for error messages."""
        return f"{self.path}, {'sentence' if self.numbers_sentences else 'line'} {number:,}"

"""Gold alignments, and readers for the usual file formats. No torch here.

``pharaoh``: a line for each sentence pair, ``0-0 1-2 2?3``, with words counted from 0. ``-``
between source and target word marks a sure link, ``?`` or ``p`` a possible one; the mark may also
follow: ``2-3?``.
``talp``: the same with words counted from 1.
``naacl``: a line for each link, ``sentence source target [S|P] [confidence]``, all counted from 1.
Word 0 means no word: such links are left out. A pair without a line has no links.
"""

import re
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from relakit.analysis.links import Link, Links
from relakit.data.lines import bad_line, read_lines
from relakit.known_names import known_name

GoldFormat: TypeAlias = Literal["pharaoh", "naacl", "talp"]
GoldFormatChoice: TypeAlias = Literal["auto", "pharaoh", "naacl", "talp"]
FirstWord: TypeAlias = Literal[0, 1]
"""The number of a sentence's first word."""

_FIRST: Final[dict[GoldFormat, FirstWord]] = {"pharaoh": 0, "naacl": 1, "talp": 1}
_ENDINGS: Final[dict[str, GoldFormat]] = {
    ".talp": "talp",
    ".naacl": "naacl",
    ".wa": "naacl",
    ".pharaoh": "pharaoh",
}
_COMPRESSED: Final = (".gz", ".zst")
_PHARAOH: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})([?pP]?)|[?pP]([0-9]{1,9}))")
_NAACL: Final = re.compile(
    r"([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})(?:\s+([SP]))?(?:\s+[0-9.eE+-]+)?"
)
_WORD_ZERO: Final = re.compile(r"(?:^|\s)0+[-?pP]|[-?pP]0+(?:[?pP]?(?:\s|$))")

_FROM_ZERO: Final = (
    "if the file counts from 0, say so: --gold-first 0, --links-first 0 or --hypothesis-first 0"
)
MAX_SENTENCES: Final = 10_000_000
"""The limit in a file that numbers its sentences: nothing should count up to a mistyped number."""


@dataclass(frozen=True)
class GoldAlignment:
    """The links of a sentence pair, as people annotated them."""

    sure: Links
    possible: Links = frozenset()
    """Always includes the sure links, whether or not they were listed"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sure", frozenset(self.sure))
        object.__setattr__(self, "possible", frozenset(self.possible) | self.sure)

    def reversed(self) -> "GoldAlignment":
        """The links of the pair with source and target swapped."""
        return GoldAlignment(
            frozenset((target, source) for source, target in self.sure),
            frozenset((target, source) for source, target in self.possible),
        )


_NO_LINKS: Final = GoldAlignment(frozenset())


def read_gold(
    path: Path, *, format: GoldFormatChoice = "auto", first: FirstWord | None = None
) -> Iterator[GoldAlignment]:
    """The alignments in a file, one sentence pair after the other.

    Args:
        path: plain, gzip or zstd.
        format: ``auto`` decides by the file's ending, or else by its content (`find_format`).
        first: the number of the first word, and in ``naacl`` of the first sentence; None: the
            format's default, 0 for ``pharaoh`` and 1 for the others. The result counts from 0.

    Returns:
        One alignment per sentence pair; for ``naacl`` up to the last sentence that has a line, once
        the whole file has been read.

    Raises:
        ValueError: names the file and the bad line.
    """
    known = resolve_format(path, format)
    first = _FIRST[known] if first is None else first
    return _read_naacl(path, first) if known == "naacl" else read_pharaoh(path, first=first)


def resolve_format(path: Path, format: GoldFormatChoice) -> GoldFormat:
    """The given format, or for ``auto`` the one that the file is in."""
    known_name("format", format, get_args(GoldFormatChoice))
    return find_format(path) if format == "auto" else format


def find_format(path: Path) -> GoldFormat:
    """The format of a file, by its ending (``.talp``, ``.naacl``, ``.wa``, ``.pharaoh``).

    With any other ending, the content decides: a line of three numbers or more means ``naacl``,
    possible links with a ``p`` and no word 0 in the whole file mean ``talp``, and anything else is
    ``pharaoh``.
    """
    endings = [ending for ending in path.suffixes if ending not in _COMPRESSED]
    if endings and endings[-1] in _ENDINGS:
        return _ENDINGS[endings[-1]]
    has_p = has_zero = False
    for line in filter(str.strip, read_lines(path)):
        if not has_p and not has_zero and _NAACL.fullmatch(line.strip()):
            return "naacl"
        has_p = has_p or "p" in line.lower()
        has_zero = has_zero or _WORD_ZERO.search(line) is not None
        if has_zero:
            break
    return "talp" if has_p and not has_zero else "pharaoh"


def parse_pharaoh(line: str, *, first: FirstWord = 0) -> GoldAlignment:
    """The links of one sentence pair.

    Raises:
        ValueError: an item is not a link, or has a word below ``first``.
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    for item in line.split():
        link, is_sure = _parse_link(item, first)
        (sure if is_sure else possible).add(link)
    return GoldAlignment(frozenset(sure), frozenset(possible))


def _parse_link(item: str, first: FirstWord) -> tuple[Link, bool]:
    match = _PHARAOH.fullmatch(item)
    if match is None:
        raise ValueError(
            f"{reprlib.repr(item)} is not a link; write SOURCE-TARGET for a sure one (3-4), "
            "SOURCE?TARGET or SOURCEpTARGET for a possible one"
        )
    left, sure_right, suffix, possible_right = match.groups()
    source, target = int(left) - first, int(sure_right or possible_right) - first
    if source < 0 or target < 0:
        raise ValueError(
            f"{item!r} has a word below {first}, the number of the first word; {_FROM_ZERO}"
        )
    return (source, target), sure_right is not None and not suffix


def read_pharaoh(path: Path, *, first: FirstWord = 0) -> Iterator[GoldAlignment]:
    """The alignments in a file, one for each line; an empty line is a pair without links.

    Args:
        path: plain, gzip or zstd.
        first: the number of the first word in the file; the result counts from 0.

    Raises:
        ValueError: names the file and the bad line.
    """
    for number, line in enumerate(read_lines(path), start=1):
        try:
            yield parse_pharaoh(line, first=first)
        except ValueError as error:
            raise bad_line(path, number, str(error)) from None


def _read_naacl(path: Path, first: FirstWord) -> Iterator[GoldAlignment]:
    sure: dict[int, set[Link]] = {}
    possible: dict[int, set[Link]] = {}
    last = -1
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            sentence, link, is_sure = _parse_naacl(line, first)
            if sentence >= MAX_SENTENCES:
                raise ValueError(
                    f"it has sentence {sentence + first:,}; there may be {MAX_SENTENCES:,} at most"
                )
        except ValueError as error:
            raise bad_line(path, number, str(error)) from None
        last = max(last, sentence)
        if link is not None:
            (sure if is_sure else possible).setdefault(sentence, set()).add(link)
    begun = 0
    for sentence in sorted({*sure, *possible, last} if last >= 0 else ()):
        yield from repeat(_NO_LINKS, sentence - begun)
        links = (frozenset(kind.get(sentence, ())) for kind in (sure, possible))
        yield GoldAlignment(*links)
        begun = sentence + 1


def _parse_naacl(line: str, first: FirstWord) -> tuple[int, Link | None, bool]:
    """Sentence and link, both counted from 0 (None: to no word), and whether the link is sure."""
    match = _NAACL.fullmatch(line.strip())
    if match is None:
        raise ValueError(
            f"{reprlib.repr(line.strip())} is not a link; write SENTENCE SOURCE TARGET, then S or "
            "P for sure or possible"
        )
    sentence, source, target = (int(number) - first for number in match.groups()[:3])
    if sentence < 0:
        raise ValueError(
            f"it has sentence {match[1]}, below {first}, the number of the first; {_FROM_ZERO}"
        )
    is_link = source >= 0 and target >= 0
    return sentence, (source, target) if is_link else None, match[4] != "P"

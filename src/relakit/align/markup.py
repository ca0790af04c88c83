"""Markup within a line: found, paired, and taken out of the text that is translated.

What counts as markup:

===========================  ==================================================================
tags                         ``<b>``, ``</b>``, ``<br/>``, ``<a href="x > y">``, ``<x:g id='1'/>``
placeholders in braces       ``{}``, ``{0}``, ``{name:>8}``, ``{{name}}``, ``{{ name }}``,
                             ``{{{name}}}``, ``${name}``, ``%{name}``, ``#{name}``; no spaces except
                             at the edges of ``{{ name }}`` and in ``{{#if name}}``, ``{{/if}}``
conversions                  ``%s``, ``%d``, ``%1$s``, ``%.2f``, ``%@``, ``%(name)s``; if a letter
                             follows, only those with a number or a name: ``%.2fs``, not ``%age``;
                             in a line with one of these, also ``%%``
entities                     ``&nbsp;``, ``&#160;``, ``&#xA0;``; not those that are part of a word:
                             letters such as ``&eacute;``, and between letters or digits all but
                             spaces: ``doesn&#39;t`` has the text ``doesn't``
===========================  ==================================================================

Everything else is text: ``a < b``, ``{see below}``, ``100%``, ``5 %ige``, ``AT&T``, comments, an
address with ``%20``.
Every character is looked at a bounded number of times, however hostile the line is.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import or_
from typing import Final

from relakit.align.entities import (
    ENTITY,
    LONGEST_ENTITY,
    escaped,
    is_letter,
    is_mark_of_text,
    unescape_marks,
)

# No piece can begin inside another: tags contain no "<", braces no brace, and so on. So what was
# read in vain is not read again from a later start. Numbers are bounded for the same reason.
_MARKUP: Final = re.compile(
    r"""
    <(?P<close>/?)(?P<name>[A-Za-z_][\w:.-]*)(?=[\s/>])(?:[^<>"']|"[^"<]*"|'[^'<]*')*>
    | \{\{\{[ ]?[^{}\s]+[ ]?\}\}\} | \{\{[ ]?[^{}\s]+[ ]?\}\} | \{\{~?[\#/^>][^{}]*\}\}
    | [$%\#]?\{[^{}\s]*\}
    | (?P<percent>%%)
    | (?P<conversion>(?<!\d)%(?:
        (?![A-Fa-f][0-9A-Fa-f])    # an address: %c3
        (?!(?<=\w%)\d)             # an address: a%20size
        (?P<digits>(?=[-+\#]{0,3}[\d.]))?
        (?:\d{1,2}\$)?[-+0\#]{0,4}\d{0,4}(?:\.\d{1,3})?(?:hh?|ll?|[Lqjzt])?[diouxXeEfFgGcCsSaAp@]
        (?(digits)|(?![^\W\d_]))  # a word: 5 %ige
        | \([A-Za-z_][\w.]*\)[-+0\#]{0,4}\d{0,4}(?:\.\d{1,3})?[diouxXeEfFgGcrsa]
      ))
    | (?P<entity>"""
    + ENTITY
    + ")",
    re.VERBOSE,
)
CLOSING: Final = frozenset('.,;:!?\u2026)]}\u00bb\u201d"\u3002\u3001\uff0c\uff01\uff1f\uff09')
"""Marks that follow a word without a space: a space before one belonged to a placeholder."""
OPENING: Final = frozenset("([{\u00ab\u201e\u201c\u00bf\u00a1\uff08")
_BLOCKS: Final = frozenset(
    {
        "address", "article", "aside", "blockquote", "br", "caption", "center", "dd", "details",
        "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer",
        "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "legend", "li", "main",
        "menu", "nav", "ol", "option", "p", "pre", "section", "summary", "table", "tbody", "td",
        "tfoot", "th", "thead", "title", "tr", "ul",
    }
)  # fmt: skip
"""HTML tags that text does not run through: words on either side of one are separate words."""
_NEVER_FIRST: Final = frozenset(".,;:!?\u2026)]}")
"""Marks that no block of text begins with."""


_BY_ORDER: Final = re.compile(r"%(?!\d{1,2}\$|[({%]).*|\{(?:[:!][^{}]*)?\}")
"""Pieces that take their values by order: %s, {}."""


def values_by_order(piece: str) -> list[str]:
    """The placeholders that take their values by order: the piece itself, or those in a tag."""
    found = [match[0] for match in _MARKUP.finditer(piece, 1)] if piece[0] == "<" else [piece]
    return [value for value in found if _BY_ORDER.fullmatch(value)]


@dataclass(frozen=True)
class Pair:
    """An opening tag and the tag that closes it, with words in between."""

    open: str
    close: str
    first: int
    """The text between them, as a span of `MarkedText.text`"""
    last: int
    parent: int | None
    """The number of the enclosing pair"""
    numbers: tuple[int, int]
    """The numbers of both tags in `MarkedText.pieces`"""


@dataclass(frozen=True)
class Run:
    """Markup without words, in one place: single pieces, and pairs with only such pieces inside."""

    text: str
    numbers: range
    """The numbers of its pieces in `MarkedText.pieces`"""
    at: int
    """Its place in `MarkedText.text`"""
    parent: int | None
    """The number of the enclosing pair"""
    space_before: bool
    """Whether a space is between it and the text before it, whatever other markup is there, too"""
    space_after: bool
    separates: bool
    """Whether it is all that stands between two words"""
    stands_off: tuple[bool, bool]
    """For either side, whether it ends in a placeholder that touches no word, so that it must not
    touch one in the translation: the mark in ``{name}'s dog`` may be gone there"""


@dataclass(frozen=True)
class MarkedText:
    """A line, split into text and markup."""

    line: str
    text: str
    """The line without markup; the line itself if it has none, and no marks as entities"""
    pieces: tuple[str, ...] = ()
    """All tags, placeholders and entities, in order"""
    pairs: tuple[Pair, ...] = ()
    """In the order of their opening tags, so that a pair comes after those that enclose it"""
    runs: tuple[Run, ...] = ()
    has_unescaped: bool = False
    """Whether some of the text needs entities in markup: ``AT&amp;T``"""

    def as_written(self, translation: str) -> Sequence[str]:
        """The characters of a translation, with entities where needed.

        None are needed if "&" and "<" stand for themselves in the source.
        """
        return escaped(translation) if self.has_unescaped else translation


def find_markup(line: str) -> MarkedText:
    """Split a line into text and markup.

    A tag that nothing closes, or that closes nothing, is treated as a single piece.
    """
    found = list(_MARKUP.finditer(line))
    if not any(match["conversion"] for match in found):  # then "%%" stands for itself
        found = [match for match in found if not match["percent"]]
    marks = _marks_within_words(line, found)
    matches = [
        match
        for number, match in enumerate(found)
        if number not in marks and not (match["entity"] and is_letter(match[0]))
    ]
    texts = [unescape_marks(text) for text in _between(line, matches)]
    has_unescaped = any(html.unescape(found[number][0]) in "<&>" for number in marks)
    if not matches:
        return MarkedText(line, texts[0], has_unescaped=has_unescaped)
    partners = _partners(matches)
    is_block = [_is_block(match) for match in matches]
    text, places = _take_out(texts, [partner is None for partner in partners], is_block)
    pieces = tuple(match[0] for match in matches)
    pairs, runs = _structure(line, matches, partners, places)
    return MarkedText(line, text, pieces, pairs, runs, has_unescaped)


def _between(line: str, matches: Sequence[re.Match[str]]) -> list[str]:
    """The text before the first piece, between each piece and the next, and after the last."""
    bounds = [0, *(place for match in matches for place in match.span()), len(line)]
    return [line[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True)]


def _is_block(match: re.Match[str]) -> bool:
    return (match["name"] or "").lower() in _BLOCKS


def _marks_within_words(line: str, found: Sequence[re.Match[str]]) -> frozenset[int]:
    """The numbers of entities that have letters or digits on both sides, ignoring tags."""
    between = _between(line, found)
    # What each piece shows to its neighbours; None: they see what is behind it.
    shown = [
        None
        if match["name"] and not _is_block(match) and not match[0].endswith("/>")
        else html.unescape(match[0])
        for match in found
    ]
    before = _last_seen([text[-1:] for text in between[:-1]], shown)
    after = _last_seen([text[:1] for text in between[:0:-1]], shown[::-1])[::-1]
    return frozenset(
        number
        for number, match in enumerate(found)
        if match["entity"]
        and before[number].isalnum()
        and after[number].isalnum()
        and not is_letter(match[0])
        and is_mark_of_text(match[0], line[match.end() : match.end() + LONGEST_ENTITY])
    )


def _last_seen(characters: Sequence[str], shown: Sequence[str | None]) -> list[str]:
    """For each piece, what was last seen before it; ``characters`` touch it, or are empty."""
    seen: list[str] = []
    last = ""
    for character, own in zip(characters, shown, strict=True):
        last = character or last
        seen.append(last)
        last = last if own is None else own
    return seen


def _partners(matches: Sequence[re.Match[str]]) -> list[int | None]:
    """For each piece, the number of the tag that it is paired with, if there is one."""
    partners: list[int | None] = [None] * len(matches)
    opened: list[tuple[str, int]] = []
    counts: Counter[str] = Counter()  # how many tags of each name are open
    for number, match in enumerate(matches):
        if match["name"] is None or match[0].endswith("/>"):
            continue
        name = match["name"].lower()
        if not match["close"]:
            opened.append((name, number))
            counts[name] += 1
        elif counts[name]:
            other = None
            while other != name:  # tags opened after it are never closed
                other, start = opened.pop()
                counts[other] -= 1
            partners[start], partners[number] = number, start
    return partners


@dataclass(frozen=True)
class _Place:
    """Where a piece was."""

    cluster: int
    """Pieces with nothing but spaces between them are in the same cluster"""
    at: int
    space_before: bool
    space_after: bool
    between_words: bool
    """Whether both sides have letters or digits, ignoring spaces, or are different blocks"""
    touches: tuple[bool, bool]
    """For either side, whether a letter or digit is next to it, ignoring other markup"""


def _take_out(
    texts: Sequence[str], is_single: Sequence[bool], is_block: Sequence[bool]
) -> tuple[str, list[_Place]]:
    """The text as one would write it without markup, and where each piece was in it.

    Args:
        texts: the text before the first piece, between each piece and the next, and after the last.
        is_single: for each piece, whether it is not a tag of a pair.
        is_block: for each piece, whether it is a tag around a block of text, or between two blocks.
    """
    places: list[_Place] = []
    parts: list[str] = []
    size = first = 0
    while first < len(is_single):
        last = first
        while last + 1 < len(is_single) and not texts[last + 1].strip():
            last += 1
        parts.append(texts[first].strip())
        size += len(parts[-1])
        sides = parts[-1][-1:], texts[last + 1].strip()[:1]
        is_word = [side.isalnum() for side in sides]
        inner = [bool(text) for text in texts[first + 1 : last + 1]]
        spaces = [texts[first][-1:].isspace(), *inner, texts[last + 1][:1].isspace()]
        so_far = list(accumulate(spaces, or_))
        to_come = list(accumulate(reversed(spaces), or_))[::-1]
        has_block = any(is_block[first : last + 1]) and sides[1] not in _NEVER_FIRST
        between_words = all(sides) and (has_block or all(is_word))
        places += [
            _Place(
                cluster=first,
                at=size,
                space_before=so_far[i],
                space_after=to_come[i + 1],
                between_words=between_words,
                touches=(is_word[0] and not so_far[i], is_word[1] and not to_come[i + 1]),
            )
            for i in range(last - first + 1)
        ]
        singles = [places[i] for i in range(first, last + 1) if is_single[i]]
        joint = " " if has_block else _joint(*sides, singles, any(spaces))
        parts.append(joint if all(sides) else "")
        size += len(parts[-1])
        first = last + 1
    parts.append(texts[-1].strip())
    return "".join(parts), places


def _joint(before: str, after: str, singles: Sequence[_Place], has_space: bool) -> str:
    """What remains between two characters once the markup is gone: a space or nothing."""
    if not singles:
        return " " if has_space else ""
    space_before, space_after = singles[0].space_before, singles[-1].space_after
    if space_before and space_after:
        return " "
    if space_before:
        return "" if after in CLOSING else " "  # "open {0}."
    if space_after:
        return "" if before in OPENING else " "  # "({0} files)"
    return " " if singles[0].between_words else ""


def _structure(
    line: str,
    matches: Sequence[re.Match[str]],
    partners: Sequence[int | None],
    places: Sequence[_Place],
) -> tuple[tuple[Pair, ...], tuple[Run, ...]]:
    pairs: list[Pair] = []
    runs: list[Run] = []
    inside: list[int] = []  # the pairs that are open
    number = 0
    while number < len(matches):
        parent = inside[-1] if inside else None
        partner, last = partners[number], _end_of_run(number, partners, places)
        if last is not None:
            first, final = places[number], places[last]
            spaces = first.space_before, final.space_after
            own = matches[number : last + 1]
            run = Run(
                text=line[own[0].start() : own[-1].end()],
                numbers=range(number, last + 1),
                at=first.at,
                parent=parent,
                space_before=first.space_before,
                space_after=final.space_after,
                separates=first.between_words and not any(spaces),
                stands_off=(
                    not first.touches[0] and _begins_with_placeholder(own),
                    not final.touches[1] and _begins_with_placeholder(reversed(own)),
                ),
            )
            runs.append(run)
            number = last
        elif partner is not None and partner > number:
            inside.append(len(pairs))
            span = places[number].at, places[partner].at
            tags = matches[number][0], matches[partner][0]
            pairs.append(Pair(*tags, *span, parent, (number, partner)))
        else:
            inside.pop()
        number += 1
    return tuple(pairs), tuple(runs)


def _begins_with_placeholder(pieces: Iterable[re.Match[str]]) -> bool:
    """Whether the first piece that is not a tag is a placeholder."""
    first = next((match for match in pieces if match["name"] is None), None)
    return first is not None and first["entity"] is None


def _end_of_run(
    number: int, partners: Sequence[int | None], places: Sequence[_Place]
) -> int | None:
    """The last piece of the run that begins with this piece; None if no run begins here."""
    cluster, end = places[number].cluster, None
    while number < len(places) and places[number].cluster == cluster:
        partner = partners[number]
        last = number if partner is None else partner
        if last < number or places[last].cluster != cluster:
            break
        end, number = last, last + 1
    return end

"""Entities of text: those within words stand for a character of the word, as in ``doesn&#39;t``."""

import html
import re
from typing import Final

ENTITY: Final = r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6});"
LONGEST_ENTITY: Final = 34
_ENTITY: Final = re.compile(ENTITY)
_NEEDS_ENTITY: Final = re.compile(rf"[<>]|&(?!{ENTITY[1:]})")
_SOFT_HYPHEN: Final = "\u00ad"


def is_letter(entity: str) -> bool:
    """Whether it is a part of words wherever it stands; it stays in the text as it is."""
    return html.unescape(entity).isalnum()


def is_mark_of_text(entity: str, next_characters: str) -> bool:
    """Whether an entity can stand within a word, as an apostrophe or a hyphen does.

    Args:
        entity: no letter.
        next_characters: those after it in the line, as many as an entity can have.
    """
    character = html.unescape(entity)
    # One without a meaning of its own is left as it is, and a forbidden one becomes nothing.
    if character in (entity, "") or character.isspace():
        return False
    # "&amp;lt;": with a bare "&" it would be another entity.
    return character != "&" or _ENTITY.match("&" + next_characters) is None


def unescape_marks(text: str) -> str:
    """A text with characters instead of its entities; letters stay as they are.

    There is nothing for a soft hyphen: the translation has other words, to be divided elsewhere.
    """

    def character(match: re.Match[str]) -> str:
        if is_letter(match[0]):
            return match[0]
        return html.unescape(match[0]).replace(_SOFT_HYPHEN, "")

    return _ENTITY.sub(character, text)


def escaped(text: str) -> list[str]:
    """The characters of a text; those that would be markup as entities."""
    characters = list(text)
    for match in _NEEDS_ENTITY.finditer(text):
        characters[match.start()] = html.escape(match[0], quote=False)
    return characters

"""Entities in text: inside a word, they stand for one of its characters: ``doesn&#39;t``."""

import html
import re
from typing import Final

ENTITY: Final = r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6});"
LONGEST_ENTITY: Final = 34
_ENTITY: Final = re.compile(ENTITY)
_NEEDS_ENTITY: Final = re.compile(rf"[<>]|&(?!{ENTITY[1:]})")
_SOFT_HYPHEN: Final = "\u00ad"


def is_letter(entity: str) -> bool:
    """Whether an entity is part of a word wherever it occurs; it stays in the text unchanged."""
    return html.unescape(entity).isalnum()


def is_mark_of_text(entity: str, next_characters: str) -> bool:
    """Whether an entity can occur inside a word, as an apostrophe or a hyphen does.

    Args:
        entity: not a letter (`is_letter`).
        next_characters: what follows it in the line, as many characters as an entity can have.
    """
    character = html.unescape(entity)
    # Unescaping leaves an unknown entity unchanged, and turns a forbidden one into nothing.
    if character in (entity, "") or character.isspace():
        return False
    # "&amp;lt;": a bare "&" would turn this into a different entity.
    return character != "&" or _ENTITY.match("&" + next_characters) is None


def unescape_marks(text: str) -> str:
    """Replace the entities of a text with their characters, except for letters.

    Soft hyphens are dropped: the translation has other words, which are divided elsewhere.
    """

    def character(match: re.Match[str]) -> str:
        if is_letter(match[0]):
            return match[0]
        return html.unescape(match[0]).replace(_SOFT_HYPHEN, "")

    return _ENTITY.sub(character, text)


def escaped(text: str) -> list[str]:
    """The characters of a text, with entities for those that would be markup."""
    characters = list(text)
    for match in _NEEDS_ENTITY.finditer(text):
        characters[match.start()] = html.escape(match[0], quote=False)
    return characters

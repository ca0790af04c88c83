"""Where tokens are in the text that they decode to."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

SPACE_MARK: Final = "\u2581"
"""How SentencePiece's vocabularies write a space."""
BYTE_NAME: Final = re.compile("<0x[0-9A-F]{2}>")
"""How SentencePiece's vocabularies write a byte of a character that they lack."""
_REPLACEMENT: Final = "\ufffd".encode()


def _byte_letters() -> dict[str, int]:
    """How byte vocabularies spell each byte: as Latin-1 if that is printable, else from 256 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + number): byte for number, byte in enumerate(others)
    }


_BYTES: Final = _byte_letters()


def bytes_of_letters(names: Iterable[str]) -> list[bytes]:
    """The bytes that each token of a byte vocabulary stands for."""
    return [
        bytes(_BYTES[letter] for letter in name) if _BYTES.keys() >= set(name) else name.encode()
        for name in names
    ]


def bytes_of_pieces(names: Iterable[str]) -> list[bytes]:
    """The bytes that each token of a character vocabulary stands for.

    If consecutive byte tokens do not form valid characters, each becomes a replacement character.
    """
    found: list[bytes] = []
    for is_bytes, group in groupby(names, key=lambda name: bool(BYTE_NAME.fullmatch(name))):
        if not is_bytes:
            found += [name.replace(SPACE_MARK, " ").encode() for name in group]
            continue
        parts = [bytes([int(name[3:5], 16)]) for name in group]
        try:
            b"".join(parts).decode()
        except UnicodeDecodeError:
            parts = [_REPLACEMENT] * len(parts)
        found += parts
    return found


def decoded_spans(parts: Sequence[bytes]) -> tuple[str, list[tuple[int, int]]]:
    """The text of tokens with single spaces between its words, and where in it each token is.

    Spans are as in `Encoded`, but spaces at the end have an empty one.
    """
    text, characters = _characters(b"".join(parts))
    places = list(_places(text))
    joined = " ".join(text.split())
    spans: list[tuple[int, int]] = []
    end, following = len(characters), (len(joined), len(joined))
    for part in reversed(parts):
        start = end - len(part)
        own = characters[start:end]
        if kept := [p for p in places[own[0] : own[-1] + 1] if p is not None]:
            following = kept[0], kept[-1] + 1
        spans.append(following)
        end = start
    return joined, spans[::-1]


def _characters(data: bytes) -> tuple[str, list[int]]:
    """The text, and the number of the character that each byte belongs to.

    Bytes that are not a valid character become a replacement character: one for all bytes that
    belong together.
    """
    text, numbers = "", list[int]()
    while len(numbers) < len(data):
        rest = data[len(numbers) :]
        try:
            good, bad = rest.decode(), 0
        except UnicodeDecodeError as error:
            good, bad = rest[: error.start].decode(), error.end - error.start
        for character in good:
            numbers += [len(text)] * len(character.encode())
            text += character
        if bad:
            numbers += [len(text)] * bad
            text += "\ufffd"
    return text, numbers


def _places(text: str) -> Iterator[int | None]:
    """The place of each character once single spaces join the words; None for a space."""
    place, space_before = 0, False
    for character in text:
        if character.isspace():
            space_before = place > 0
            yield None
            continue
        place += space_before
        space_before = False
        yield place
        place += 1

"""Reads SentencePiece's ``.model`` files: protocol buffers, of which we need a few fields.

SentencePiece describes the format in ``sentencepiece_model.proto``. Fields that are not named here
do not change how text is split, and are skipped.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from relakit.files.reading import open_file
from relakit.limits import MAX_VOCABULARY

MAX_BYTES: Final = 1 << 28
"""Largest ``.model`` file that is read; one with a million pieces has a tenth of that."""

PieceKind: TypeAlias = Literal["normal", "unknown", "control", "user", "unused", "byte"]
_KINDS: Final[dict[int, PieceKind]] = {
    1: "normal", 2: "unknown", 3: "control", 4: "user", 5: "unused", 6: "byte",
}  # fmt: skip
_UNIGRAM, _BPE = 1, 2
_ALGORITHMS: Final = {_UNIGRAM: "unigram", _BPE: "bpe", 3: "word", 4: "char"}

_Value: TypeAlias = int | bytes


@dataclass(frozen=True)
class Piece:
    """An entry of the vocabulary."""

    text: str
    score: float
    kind: PieceKind


@dataclass(frozen=True)
class SentencePieceModel:
    """What a ``.model`` file says about splitting text."""

    pieces: tuple[Piece, ...]
    is_bpe: bool
    """Otherwise it is a unigram model."""
    byte_fallback: bool
    """Characters that are not in the vocabulary are written as bytes."""
    character_map: bytes
    """How characters are normalised, in SentencePiece's compiled form; empty: not at all."""


def read_sentencepiece(path: Path) -> SentencePieceModel:
    """Read a ``.model`` file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a model, is damaged, or is of an unusable kind; names the file.
    """
    with open_file(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES:,} bytes: it is no SentencePiece model")
    try:
        return _parse(content)
    except _Unusable as error:
        raise ValueError(f"{path} cannot be used: {error}") from None
    except (ValueError, struct.error, IndexError) as error:
        raise ValueError(
            f"{path} is neither a tokenizer.json nor a SentencePiece .model, or is damaged: "
            f"{error}; name one of these"
        ) from None


class _Unusable(ValueError):
    """A model that is intact, but of a kind that cannot be used."""


def _parse(content: bytes) -> SentencePieceModel:
    pieces: list[Piece] = []
    trainer: dict[int, _Value] = {}
    normalizer: dict[int, _Value] = {}
    for number, value in _fields(content):
        if number == 1:
            pieces.append(_piece(_bytes(value)))
        elif number == 2:
            trainer = dict(_fields(_bytes(value)))
        elif number == 3:
            normalizer = dict(_fields(_bytes(value)))
    if not any(piece.kind == "normal" for piece in pieces):
        raise ValueError("it has no pieces")
    if len(pieces) > MAX_VOCABULARY:
        raise _Unusable(f"it has {len(pieces):,} pieces, more than {MAX_VOCABULARY:,}")
    algorithm = trainer.get(3, _UNIGRAM)
    if algorithm not in (_UNIGRAM, _BPE):
        name = _ALGORITHMS.get(_integer(algorithm), f"number {algorithm!r}")
        raise _Unusable(f"its model_type is {name}; it must be unigram or bpe")
    if trainer.get(24):
        raise _Unusable("its spaces are at the end of words (treat_whitespace_as_suffix)")
    if not normalizer.get(5, 1):
        raise _Unusable("its spaces are not escaped (escape_whitespaces = false)")
    return SentencePieceModel(
        pieces=tuple(pieces),
        is_bpe=algorithm == _BPE,
        byte_fallback=any(piece.kind == "byte" for piece in pieces),
        character_map=_bytes(normalizer.get(2, b"")),
    )


def _piece(content: bytes) -> Piece:
    fields = dict(_fields(content))
    kind = _integer(fields.get(3, 1))
    if kind not in _KINDS:
        raise ValueError(f"a piece is of the unknown type {kind}")
    score = struct.unpack("<f", _bytes(fields.get(2, bytes(4))))[0]
    return Piece(_bytes(fields.get(1, b"")).decode("utf-8"), score, _KINDS[kind])


def _fields(content: bytes) -> Iterator[tuple[int, _Value]]:
    """Number and value of each field of a message; strings, floats and messages are bytes."""
    place = 0
    while place < len(content):
        tag, place = _varint(content, place)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, place = _varint(content, place)
            yield number, value
            continue
        if wire_type == 2:
            size, place = _varint(content, place)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
        else:
            raise ValueError(f"there is no wire type {wire_type}, as at byte {place:,}")
        if place + size > len(content):
            raise ValueError(f"it ends within field {number} at byte {place:,}")
        yield number, content[place : place + size]
        place += size


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """A number stored as seven bits per byte, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(content):
            raise ValueError("it ends within a number")
        byte = content[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError(f"the number before byte {place:,} has no end")


def _bytes(value: _Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number stands where text should be")
    return value


def _integer(value: _Value) -> int:
    if not isinstance(value, int):
        raise ValueError("text stands where a number should be")
    return value

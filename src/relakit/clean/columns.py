"""A table of scores: its columns, and its rows as text. No torch here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from relakit.clean.features import PairFeatures, Word

Cell: TypeAlias = str | int | float | None
Kind: TypeAlias = Literal["integer", "number", "text"]
DIGITS: Final = 7
"""Of numbers, as many as attention is computed with."""


@dataclass(frozen=True)
class Column:
    """A column: its name, what is in it, and where that comes from."""

    name: str
    kind: Kind
    read: Callable[[PairFeatures], Cell]


def _listed(words: tuple[Word, ...]) -> str:
    return " ".join(map(str, words))


NUMBER: Final = "line"
"""The first column, which is never empty."""
COLUMNS: Final = (
    Column("null_rate", "number", lambda f: f.null_rate),
    Column("alignment_null_rate", "number", lambda f: f.alignment_null_rate),
    Column("attention_mass", "number", lambda f: f.attention_mass),
    Column("unsupported_words", "integer", lambda f: len(f.unsupported)),
    Column("unsupported", "text", lambda f: _listed(f.unsupported)),
    Column("uncovered_words", "integer", lambda f: len(f.uncovered)),
    Column("uncovered", "text", lambda f: _listed(f.uncovered)),
    Column("cross_entropy", "number", lambda f: f.cross_entropy),
    Column("worst_loss", "number", lambda f: f.worst.loss),
    Column("worst_token", "text", lambda f: f.worst.token),
    Column("worst_word", "text", lambda f: None if f.worst.word is None else str(f.worst.word)),
    Column("reverse_cross_entropy", "number", lambda f: f.reverse_cross_entropy),
    Column("dual_cross_entropy", "number", lambda f: f.dual_cross_entropy),
    Column("source_words", "integer", lambda f: f.source_words),
    Column("target_words", "integer", lambda f: f.target_words),
    Column("word_ratio", "number", lambda f: f.word_ratio),
    Column("character_ratio", "number", lambda f: f.character_ratio),
    Column("source_language", "number", lambda f: f.source_language),
    Column("target_language", "number", lambda f: f.target_language),
)
"""All but the first."""


def header_line() -> str:
    """The names of the columns."""
    return "\t".join([NUMBER, *(column.name for column in COLUMNS)]) + "\n"


def row_line(number: int, features: PairFeatures | None) -> str:
    """The row of a pair; all its cells but the first are empty if nothing was computed."""
    cells = [None if features is None else column.read(features) for column in COLUMNS]
    return "\t".join([str(number), *map(_text, cells)]) + "\n"


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.{DIGITS}g}" if isinstance(cell, float) else str(cell)

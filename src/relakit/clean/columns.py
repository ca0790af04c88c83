"""A table of scores: its columns, and its rows as text. No torch here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from relakit.clean.features import PairFeatures, Word

Cell: TypeAlias = str | int | float | None
Kind: TypeAlias = Literal["integer", "number", "text"]
Good: TypeAlias = Literal["low", "high", "typical"]
"""Which numbers of a column speak for a pair. ``typical``: those near the median of the corpus, for
ratios, where half is as far off as double."""
DIGITS: Final = 7
"""Significant digits of numbers: as many as attention is computed with."""
_SEPARATORS_AS_SPACES: Final = str.maketrans("\t\r\n", "   ")
"""What separates cells, and what ends rows."""


@dataclass(frozen=True)
class Column:
    """A column: its name, what it holds, where that comes from, and what good pairs have there."""

    name: str
    kind: Kind
    read: Callable[[PairFeatures], Cell]
    good: Good | None = None
    """None: pairs cannot be ranked by this column."""


def _listed(words: tuple[Word, ...]) -> str:
    return " ".join(map(str, words))


NUMBER: Final = "line"
"""The first column, which is never empty."""
COLUMNS: Final = (
    Column("null_rate", "number", lambda f: f.null_rate, "low"),
    Column("alignment_null_rate", "number", lambda f: f.alignment_null_rate, "low"),
    Column("attention_mass", "number", lambda f: f.attention_mass, "high"),
    Column("unsupported_words", "integer", lambda f: len(f.unsupported), "low"),
    Column("unsupported", "text", lambda f: _listed(f.unsupported)),
    Column("unsupported_share", "number", lambda f: f.unsupported_share, "low"),
    Column("uncovered_words", "integer", lambda f: len(f.uncovered), "low"),
    Column("uncovered", "text", lambda f: _listed(f.uncovered)),
    Column("cross_entropy", "number", lambda f: f.cross_entropy, "low"),
    Column("worst_loss", "number", lambda f: f.worst.loss, "low"),
    Column("worst_token", "text", lambda f: f.worst.token),
    Column("worst_word", "text", lambda f: None if f.worst.word is None else str(f.worst.word)),
    Column("worst_span_loss", "number", lambda f: f.worst_span_loss, "low"),
    Column("end_loss", "number", lambda f: f.end_loss, "low"),
    Column("reverse_cross_entropy", "number", lambda f: f.reverse_cross_entropy, "low"),
    Column("reverse_worst_span_loss", "number", lambda f: f.reverse_worst_span_loss, "low"),
    Column("dual_cross_entropy", "number", lambda f: f.dual_cross_entropy, "low"),
    Column("source_words", "integer", lambda f: f.source_words),
    Column("target_words", "integer", lambda f: f.target_words),
    Column("same_words", "integer", lambda f: f.same_words, "low"),
    Column("word_ratio", "number", lambda f: f.word_ratio, "typical"),
    Column("character_ratio", "number", lambda f: f.character_ratio, "typical"),
    Column("source_language", "number", lambda f: f.source_language, "high"),
    Column("target_language", "number", lambda f: f.target_language, "high"),
)
"""All columns but the first."""


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
    if isinstance(cell, str):  # a token may span two words, and what is between them
        return cell.translate(_SEPARATORS_AS_SPACES)
    return f"{cell:.{DIGITS}g}" if isinstance(cell, float) else str(cell)

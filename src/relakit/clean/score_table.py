"""Tables that `relakit score` wrote, read back block by block. No torch here."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from relakit.amounts import number_with_noun
from relakit.clean.columns import COLUMNS, NUMBER
from relakit.clean.parquet import ENDING, check_parquet
from relakit.data.lines import read_lines
from relakit.data.parallel_files import NumberedPair, ParallelFiles, read_numbered_pairs
from relakit.files.reading import open_file
from relakit.limits import MAX_LINE_BYTES

BLOCK_ROWS: Final = 4096
MOST_BYTES: Final = 16 * MAX_LINE_BYTES
"""Most bytes of a row: it may name each word of two lines, numbered, and one word three times."""
NEEDED: Final = (
    NUMBER, "cross_entropy", "source_words", "target_words", "word_ratio", "character_ratio",
)  # fmt: skip
"""Columns without which a table is useless."""
NUMBERS: Final = tuple(column.name for column in COLUMNS if column.kind != "text")
TEXTS: Final = tuple(column.name for column in COLUMNS if column.kind == "text")
RATIOS: Final = tuple(column.name for column in COLUMNS if column.good == "typical")
NUMBERED_WORDS: Final = ("unsupported", "uncovered", "worst_word")
_WORDS: Final = re.compile(r"(?:[0-9]{1,9}:[^ ]*(?: [0-9]{1,9}:[^ ]*)*)?", re.DOTALL)
"""Words with their numbers, or none."""
SCORE_AGAIN: Final = "score this text with relakit score, or leave --scores out"

Numbers: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ScoreBlock:
    """Some consecutive rows of a table."""

    start: int
    """The number of the first row in the table, from 0, not counting the header"""
    lines: npt.NDArray[np.int64]
    """The line of the corpus that each row is about"""
    numbers: Mapping[str, Numbers]
    """By column; NaN where a cell is empty"""
    texts: Mapping[str, Sequence[str]]

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def is_blank(self) -> npt.NDArray[np.bool_]:
        """Rows of pairs with a blank side, which have no scores."""
        return np.isnan(self.numbers["cross_entropy"])

    def cells(self, place: int) -> dict[str, float | str | None]:
        """All cells of one row, by column."""
        found: dict[str, float | str | None] = {}
        for name, numbers in self.numbers.items():
            number = float(numbers[place])
            found[name] = None if math.isnan(number) else number
        return found | {name: texts[place] for name, texts in self.texts.items()}


class ScoreTable:
    """A table of scores in a file: tab-separated, plain or compressed, or Parquet.

    Raises:
        OSError, ValueError: it cannot be read, or is not such a table.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._is_parquet = path.name.endswith(ENDING)
        if self._is_parquet:
            check_parquet(path)
        self.names: Final = self._read_names()
        """The names of all columns, in order"""
        for name in NEEDED:
            if name not in self.names:
                raise ValueError(
                    f"{path} has no column called {name!r}, so it is no table of relakit score; "
                    f"its columns are {_listed(self.names)}"
                )

    def has(self, column: str) -> bool:
        return column in self.names

    def blocks(self) -> Iterator[ScoreBlock]:
        """The rows, in order.

        Raises:
            OSError, ValueError: the file is damaged; names the row where it can.
        """
        return self._parquet_blocks() if self._is_parquet else self._text_blocks()

    def blocks_with_pairs(
        self, files: ParallelFiles
    ) -> Iterator[tuple[list[NumberedPair], ScoreBlock]]:
        """The rows, together with the pairs that they are about.

        Raises:
            OSError, ValueError: something cannot be read, or the rows are not about these pairs.
        """
        pairs = read_numbered_pairs(files)
        rows = 0
        for block in self.blocks():
            some = list(islice(pairs, len(block)))
            for place, pair in enumerate(some):
                self._check_is_about(pair, block, place, files)
            rows += len(block)
            if len(some) < len(block):
                rest = sum(len(one) for one in self.blocks()) - block.start
                raise self._differ(block.start + rest, files, block.start + len(some))
            yield some, block
        if left := sum(1 for _ in pairs):
            raise self._differ(rows, files, rows + left)

    def _check_is_about(
        self, pair: NumberedPair, block: ScoreBlock, place: int, files: ParallelFiles
    ) -> None:
        row, unit = block.start + place + 1, files.unit
        line = int(block.lines[place])
        if line != pair.number:
            raise ValueError(
                f"{self.path}, row {row:,}: it is about {unit} {line:,}, and should be about "
                f"{unit} {pair.number:,} of {files.source}: rows are missing, or in another order; "
                f"{SCORE_AGAIN}"
            )
        if block.is_blank[place] and pair.has_blank_side:
            return
        counted = [block.numbers[name][place] for name in ("source_words", "target_words")]
        words = [len(text.split()) for text in pair.texts]
        if counted != words:
            said = "none" if block.is_blank[place] else "{:,.0f} and {:,.0f}".format(*counted)
            raise ValueError(
                f"{self.path}, row {row:,}: it has scores of {said} source and target words, "
                f"{unit} {line:,} of {files.source} has {words[0]:,} and {words[1]:,}: they are of "
                f"another text; {SCORE_AGAIN}"
            )

    def _differ(self, rows: int, files: ParallelFiles, pairs: int) -> ValueError:
        return ValueError(
            f"{self.path} has scores of {number_with_noun(rows, 'pair')}, {files.source} has "
            f"{pairs:,}: they are of another text; {SCORE_AGAIN}"
        )

    def _read_names(self) -> tuple[str, ...]:
        if self._is_parquet:
            with _parquet_file(self.path) as file:
                return tuple(file.schema_arrow.names)
        first = next(self._lines(), None)
        if first is None:
            raise ValueError(f"{self.path} is empty")
        return tuple(first.split("\t"))

    def _lines(self) -> Iterator[str]:
        return read_lines(self.path, max_bytes=MOST_BYTES)

    def _text_blocks(self) -> Iterator[ScoreBlock]:
        lines = self._lines()
        next(lines)
        start = 0
        while rows := [line.split("\t") for line in islice(lines, BLOCK_ROWS)]:
            for place, row in enumerate(rows):
                if len(row) != len(self.names):
                    raise ValueError(
                        f"{self.path}, row {start + place + 1:,}: it has {len(row)} columns, the "
                        f"first line names {len(self.names)}"
                    )
            cells = dict(zip(self.names, zip(*rows, strict=True), strict=True))
            yield self._block(start, cells)
            start += len(rows)

    def _parquet_blocks(self) -> Iterator[ScoreBlock]:
        start = 0
        with _parquet_file(self.path) as file:
            for batch in file.iter_batches(batch_size=BLOCK_ROWS):
                columns = {
                    name: ["" if cell is None else cell for cell in column.to_pylist()]
                    for name, column in zip(self.names, batch.columns, strict=True)
                }
                yield self._block(start, columns)
                start += batch.num_rows

    def _block(self, start: int, cells: Mapping[str, Sequence[Any]]) -> ScoreBlock:
        def numbers(name: str) -> Numbers:
            return _numbers(cells[name], self.path, start, name)

        def refuse(wrong: npt.NDArray[np.bool_], name: str, must_be: str) -> None:
            if wrong.any():
                place = int(wrong.argmax())
                cell = cells[name][place]
                problem = f"{name} must be {must_be}, got {cell!r}"
                raise ValueError(
                    f"{self.path}, row {start + place + 1:,}: "
                    f"{f'the column {name!r} is empty' if cell == '' else problem}"
                )

        found = {name: numbers(name) for name in (NUMBER, *NUMBERS) if name in cells}
        has_scores = ~np.isnan(found["cross_entropy"])
        for name in NEEDED:
            wrong = np.isnan(found[name]) & (has_scores | (name == NUMBER))
            refuse(wrong, name, "a number")
        for name in RATIOS:
            refuse(found[name] <= 0, name, "above 0")
        texts = {name: cells[name] for name in TEXTS if name in cells}
        for name in NUMBERED_WORDS:
            wrong = np.array(
                [
                    not (isinstance(cell, str) and _WORDS.fullmatch(cell))
                    for cell in texts.get(name, ())
                ],
                dtype=bool,
            )
            refuse(wrong, name, "words with their numbers, such as 3:Hund")
        lines = found.pop(NUMBER).astype(np.int64)
        return ScoreBlock(start=start, lines=lines, numbers=found, texts=texts)


def _numbers(cells: Sequence[Any], path: Path, start: int, name: str) -> Numbers:
    """The numbers of a column, NaN where a cell is empty."""
    is_empty = [cell == "" for cell in cells]
    try:
        found = np.array(
            [
                math.nan if empty else float(cell)
                for cell, empty in zip(cells, is_empty, strict=True)
            ]
        )
        wrong = ~np.isfinite(found) & ~np.array(is_empty)
    except (TypeError, ValueError):
        wrong = np.array([not _is_number(cell) for cell in cells])
    if wrong.any():
        place = int(wrong.argmax())
        raise ValueError(
            f"{path}, row {start + place + 1:,}: {name} must be a number, got {cells[place]!r}"
        )
    return found


def _is_number(cell: Any) -> bool:
    try:
        return cell == "" or math.isfinite(float(cell))
    except (TypeError, ValueError):
        return False


@contextmanager
def _parquet_file(path: Path) -> Iterator[Any]:
    """An open Parquet file that raises relakit's own errors."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    open_file(path).close()
    try:
        with ParquetFile(path) as file:
            yield file
    except (ArrowException, OSError):
        raise ValueError(f"{path} is no Parquet file, or is damaged") from None


def _listed(names: Iterable[str]) -> str:
    some = [name if len(name) < 30 else f"{name[:30]}…" for name in islice(names, 8)]
    return ", ".join(map(repr, some)) + (", …" if len(some) == 8 else "")

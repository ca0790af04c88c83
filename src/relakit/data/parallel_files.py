"""Sentence pairs: line by line in two files, or together in one of several formats."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from relakit.amounts import number_with_noun
from relakit.data.lines import bad_line, check_has_text, read_lines
from relakit.data.tmx import read_tmx
from relakit.known_names import known_name

PairFormat: TypeAlias = Literal["tsv", "bars", "tmx"]
"""How one file holds both sides. ``tsv``: columns separated by tabs. ``bars``: source, ``|||`` and
target. ``tmx``: a translation memory."""
PAIR_FORMATS: Final[tuple[PairFormat, ...]] = get_args(PairFormat)
BARS: Final = "|||"
_TMX_ENDINGS: Final = (".tmx", ".tmx.gz", ".tmx.zst")
_MOST_DIGITS: Final = 9
_LOOKED_AT: Final = 100
"""Most lines at the start of a file that are read to guess its format."""


@dataclass(frozen=True)
class ParallelFiles:
    """Where to find sentence pairs: in two files, or in one.

    Raises:
        ValueError: the settings do not fit together.
    """

    source: Path
    target: Path | None = None
    """None: ``source`` holds both."""
    format: PairFormat = "tsv"
    """How ``source`` holds both; two files have one sentence per line."""
    columns: tuple[str, str] = ("1", "2")
    """The source and target columns of a table: by number from 1, or by name in its first line,
    which then holds no sentences."""
    languages: tuple[str, str] | None = None
    """The source and target languages in a translation memory, such as ``en``, which also matches
    ``en-GB``."""

    def __post_init__(self) -> None:
        known_name("format", self.format, PAIR_FORMATS)
        numbers = [_column_number(column) for column in self.columns]
        if self.columns[0] == self.columns[1] or (numbers[0] == numbers[1] is not None):
            raise ValueError(f"source and target are both column {self.columns[0]!r}; name two")
        if 0 in numbers:
            raise ValueError("there is no column 0: columns are counted from 1")

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.source,) if self.target is None else (self.source, self.target)

    @property
    def unit(self) -> str:
        """What the numbers of pairs count."""
        return "unit" if self.target is None and self.format == "tmx" else "line"


class NumberedPair(NamedTuple):
    """A sentence pair and its place in the file."""

    number: int
    """The number of its line, or of its unit in a translation memory; from 1"""
    source: str
    target: str

    @property
    def texts(self) -> tuple[str, str]:
        return self.source, self.target

    @property
    def has_blank_side(self) -> bool:
        return not (self.source.strip() and self.target.strip())


def read_pairs(files: ParallelFiles) -> Iterator[tuple[str, str]]:
    """The texts of the pairs, one after the other; see `read_numbered_pairs`."""
    return (pair.texts for pair in read_numbered_pairs(files))


def read_numbered_pairs(files: ParallelFiles) -> Iterator[NumberedPair]:
    """The pairs, one after the other. Blank lines are pairs, too.

    Raises:
        OSError: a file cannot be read.
        ValueError: names the file, and the bad line or both line counts.
    """
    if files.target is not None:
        return _line_by_line(files.source, files.target)
    if files.format == "tmx":
        return _memory(files)
    path = files.source
    split = _split_at_bars if files.format == "bars" else _Columns(files.columns)
    return _one_by_one(path, split)


def spread_evenly(
    pairs: Iterable[tuple[str, str]], total: int, most: int
) -> Iterator[tuple[str, str]]:
    """At most ``most`` of ``total`` pairs, spread over all of them."""
    wanted, taken = min(total, most), 0
    for number, pair in enumerate(pairs):
        # Take this pair if we have taken a smaller share than we have read.
        if taken * total <= number * wanted and taken < wanted:
            taken += 1
            yield pair


def guess_format(path: Path) -> PairFormat:
    """The format of a file with both sides, guessed by its name or its first lines with text.

    Raises:
        OSError: the file cannot be read.
        ValueError: nothing in it separates a source from a target.
    """
    if path.name.lower().endswith(_TMX_ENDINGS):
        return "tmx"
    for number, line in enumerate(read_lines(path), start=1):
        if "\t" in line:
            return "tsv"
        if BARS in line:
            return "bars"
        if line.strip() or number == _LOOKED_AT:
            raise bad_line(
                path,
                number,
                f"neither a tab nor {BARS} between a source and a target; give the translations in "
                "a file of their own, or both sides as tsv, bars or tmx",
            )
    raise ValueError(f"{path} is empty" if path.stat().st_size == 0 else f"{path} has no text")


def _line_by_line(source: Path, target: Path) -> Iterator[NumberedPair]:
    source_lines, target_lines = read_lines(source), read_lines(target)
    count = 0
    source_has_text = target_has_text = False
    while True:
        source_line, target_line = next(source_lines, None), next(target_lines, None)
        if source_line is None or target_line is None:
            break
        count += 1
        source_has_text = source_has_text or bool(source_line.strip())
        target_has_text = target_has_text or bool(target_line.strip())
        yield NumberedPair(count, source_line, target_line)
    sources = count + (source_line is not None) + sum(1 for _ in source_lines)
    targets = count + (target_line is not None) + sum(1 for _ in target_lines)
    # Report an empty file first; whether others have text is only known if line counts agree.
    agree = sources == targets
    check_has_text(source, sources, has_text=source_has_text or not agree)
    check_has_text(target, targets, has_text=target_has_text or not agree)
    if not agree:
        raise ValueError(
            f"{source} has {number_with_noun(sources, 'line')}, {target} has {targets:,}: line n "
            "of one must be the translation of line n of the other"
        )


_Split: TypeAlias = Callable[[Path, int, str], tuple[str, str] | None]
"""Gives the source and target of a line; None for the line that names the columns."""


def _one_by_one(path: Path, split: _Split) -> Iterator[NumberedPair]:
    number, has_text, has_names = 0, False, False
    for number, line in enumerate(read_lines(path), start=1):
        if not line or line.isspace():
            # As in two files: a blank line is a pair of blank lines.
            yield NumberedPair(number, "", "")
            continue
        texts = split(path, number, line)
        if texts is None:
            has_names = True
            continue
        has_text = True
        yield NumberedPair(number, *texts)
    if has_names and not has_text:
        raise ValueError(f"{path} has only the line that names its columns, and no pairs")
    check_has_text(path, number, has_text=has_text)


def _column_number(column: str) -> int | None:
    """The column's number; None for a name, or a number larger than any table has columns."""
    is_number = column.isascii() and column.isdecimal() and len(column) <= _MOST_DIGITS
    return int(column) if is_number else None


class _Columns:
    """Takes two columns from the lines of a table."""

    def __init__(self, columns: tuple[str, str]) -> None:
        self._columns = columns
        numbers = [number for number in map(_column_number, columns) if number is not None]
        self._places = (
            tuple(number - 1 for number in numbers) if len(numbers) == len(columns) else None
        )

    def __call__(self, path: Path, number: int, line: str) -> tuple[str, str] | None:
        cells = line.split("\t")
        if self._places is None:
            self._places = self._find(path, number, cells)
            return None
        if len(cells) < 2:
            raise bad_line(path, number, "no tab; every line needs a source, a tab and a target")
        if len(cells) <= max(self._places):
            raise bad_line(
                path,
                number,
                f"it has {len(cells)} columns, but column {max(self._places) + 1} is asked for",
            )
        source, target = (cells[place] for place in self._places)
        return source, target

    def _find(self, path: Path, number: int, names: list[str]) -> tuple[int, ...]:
        names = [name.strip() for name in names]
        for column in self._columns:
            if names.count(column) != 1:
                problem = "two columns called" if column in names else "no column called"
                raise bad_line(
                    path, number, f"{problem} {column!r}; there are {', '.join(names) or 'none'}"
                )
        return tuple(names.index(column) for column in self._columns)


def _split_at_bars(path: Path, number: int, line: str) -> tuple[str, str]:
    parts = line.split(BARS)
    if len(parts) != 2:
        raise bad_line(
            path,
            number,
            f"{BARS} must be there once, between source and target, not {len(parts) - 1} times",
        )
    return parts[0].strip(), parts[1].strip()


def _memory(files: ParallelFiles) -> Iterator[NumberedPair]:
    units = enumerate(read_tmx(files.source, files.languages), start=1)
    return (NumberedPair(number, *texts) for number, texts in units)

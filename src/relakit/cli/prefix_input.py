"""What translations must begin with, from a file or from a column of the input."""

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from relakit.amounts import number_with_noun

PREFIXES = "Prefixes"

PrefixFile = Annotated[
    Path | None,
    typer.Option(
        help="What each translation must begin with, line by line; an empty line means no prefix. "
        "A prefix that ends within a word is completed; one that ends in a space is not.",
        rich_help_panel=PREFIXES,
    ),
]
PrefixColumn = Annotated[
    bool,
    typer.Option(
        "--prefix-column",
        help="Like --prefix-file, but each line of the input is a sentence, a tab and its prefix.",
        rich_help_panel=PREFIXES,
    ),
]


def with_prefixes(
    lines: Iterator[str], path: Path | None, *, column: bool, name: Path | str
) -> tuple[Iterator[str], Iterator[str] | None]:
    """Sentences, and their prefixes if any, which can be read only as far as the sentences.

    Args:
        lines: the input.
        path: a file with prefixes.
        column: whether the prefixes are in the input.
        name: the name of the input.

    Raises:
        ValueError: prefixes are in a file and in the input; or, while reading, there are not as
            many prefixes as lines, or a line has more than one.
    """
    if path is not None and column:
        raise ValueError("--prefix-file and --prefix-column exclude each other; give one of them")
    if path is None and not column:
        return lines, None
    pairs = _from_column(lines, name) if path is None else _from_file(lines, path)
    waiting: deque[str] = deque()

    def sentences() -> Iterator[str]:
        for sentence, prefix in pairs:
            waiting.append(prefix)
            yield sentence

    def prefixes() -> Iterator[str]:
        while waiting:
            yield waiting.popleft()

    return sentences(), prefixes()


def _from_column(lines: Iterable[str], name: Path | str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        sentence, *prefix = line.split("\t")
        if len(prefix) > 1:
            raise ValueError(
                f"{name}, line {number:,}: it has {len(prefix) + 1:,} columns; --prefix-column "
                "takes a sentence, a tab and its prefix"
            )
        yield sentence, prefix[0] if prefix else ""


def _from_file(lines: Iterable[str], path: Path) -> Iterator[tuple[str, str]]:
    from relakit.data.lines import read_lines

    prefixes = read_lines(path)
    count = 0
    for line in lines:
        prefix = next(prefixes, None)
        if prefix is None:
            raise ValueError(
                f"{path} has {number_with_noun(count, 'line')}, the input has more: each needs a "
                "prefix, which may be empty"
            )
        count += 1
        yield line, prefix
    if more := sum(1 for _ in prefixes):
        raise ValueError(
            f"{path} has {number_with_noun(count + more, 'line')}, the input has {count:,}: line n "
            "of one must belong to line n of the other"
        )

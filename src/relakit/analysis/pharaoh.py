"""Alignments as text: a line for each sentence pair, such as ``0-0 1-2 2?3``.

``-`` between source and target word is a sure link, ``?`` or ``p`` a possible one, as in files
with the ending ``.talp``; the mark of a possible link may also follow it: ``2-3?``.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias

from relakit.analysis.alignment import GoldAlignment, Link
from relakit.data.lines import read_lines
from relakit.data.whole_files import write_whole

FirstWord: TypeAlias = Literal[0, 1]
"""The number of a sentence's first word."""

_LINK: Final = re.compile(r"([0-9]+)(?:-([0-9]+)([?pP]?)|[?pP]([0-9]+))")


def parse_pharaoh(line: str, *, first: FirstWord = 0) -> GoldAlignment:
    """The links of one sentence pair.

    Raises:
        ValueError: what is no link, or has a word below ``first``.
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    for item in line.split():
        link, is_sure = _parse_link(item, first)
        (sure if is_sure else possible).add(link)
    return GoldAlignment(frozenset(sure), frozenset(possible))


def _parse_link(item: str, first: FirstWord) -> tuple[Link, bool]:
    match = _LINK.fullmatch(item)
    if match is None:
        raise ValueError(
            f"{item!r} is no link; write SOURCE-TARGET for a sure one (3-4), SOURCE?TARGET or "
            "SOURCEpTARGET for a possible one"
        )
    left, sure_right, suffix, possible_right = match.groups()
    source, target = int(left) - first, int(sure_right or possible_right) - first
    if source < 0 or target < 0:
        raise ValueError(
            f"{item!r} has a word below {first}, the number of the first word; read it with words "
            "counted from 0"
        )
    return (source, target), sure_right is not None and not suffix


def read_pharaoh(path: Path, *, first: FirstWord = 0) -> Iterator[GoldAlignment]:
    """The alignments of a file, one for each line; an empty line is a pair without links.

    Args:
        path: plain, gzip or zstd.
        first: the number of the first word in the file; what is returned counts from 0.

    Raises:
        ValueError: the file and the line that is no alignment.
    """
    for number, line in enumerate(read_lines(path), start=1):
        try:
            yield parse_pharaoh(line, first=first)
        except ValueError as error:
            raise ValueError(f"{path}, line {number:,}: {error}") from None


def format_pharaoh(gold: GoldAlignment, *, first: FirstWord = 0) -> str:
    """The links of one sentence pair, sorted; possible ones with ``?``."""
    return " ".join(
        f"{source + first}{'-' if (source, target) in gold.sure else '?'}{target + first}"
        for source, target in sorted(gold.possible)
    )


def write_pharaoh(path: Path, alignments: Iterable[GoldAlignment], *, first: FirstWord = 0) -> None:
    """Write a line for each alignment; the file appears when it is complete."""
    lines = [format_pharaoh(gold, first=first) + "\n" for gold in alignments]
    write_whole(path, "".join(lines).encode())

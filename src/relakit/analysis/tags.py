"""Tags of words from a file: a line for each sentence, a tag for each word."""

from collections.abc import Iterator
from pathlib import Path

from relakit.data.lines import read_lines


def read_tags(path: Path) -> Iterator[tuple[str, ...]]:
    """The tags of each sentence; they have spaces between them.

    Args:
        path: plain, gzip or zstd.
    """
    return (tuple(line.split()) for line in read_lines(path))

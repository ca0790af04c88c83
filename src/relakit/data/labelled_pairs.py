"""Sentence pairs with a label for their quality, such as a person's judgement."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from relakit.data.lines import bad_line, read_lines


@dataclass(frozen=True)
class LabelledPair:
    """A sentence pair, and what is known about its quality."""

    source: str
    target: str
    label: str
    score: float | None = None
    """From some other tool"""

    @property
    def texts(self) -> tuple[str, str]:
        """Source and target."""
        return self.source, self.target


def read_labelled_pairs(path: Path) -> Iterator[LabelledPair]:
    """The pairs in a file with four columns, as in ParaCrawl's human evaluations.

    The columns are source, target, score and label, separated by tabs; the file is plain, gzip or
    zstd.

    Raises:
        ValueError: names the file, and the bad line.
    """
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 4:
            raise bad_line(
                path,
                number,
                "every line needs 4 columns (source, target, score, label) with tabs between them, "
                f"got {len(columns)}",
            )
        source, target, score, label = columns
        if not label.strip():
            raise bad_line(path, number, "the label, the fourth column, is empty")
        yield LabelledPair(source, target, label.strip(), _number(score, path, number))
    if not number:
        raise ValueError(f"{path} is empty")


def _number(text: str, path: Path, line: int) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise bad_line(path, line, f"the score, the third column, must be a number, got {text!r}")
    return score

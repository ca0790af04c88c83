"""Sentence pairs: line by line in two files, or in two columns of one."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from relakit.data.lines import bad_line, check_has_text, read_lines


@dataclass(frozen=True)
class ParallelFiles:
    """Where to find sentence pairs: in two files, or in the first two columns of one."""

    source: Path
    target: Path | None = None
    """None: ``source`` holds both, with a tab between them."""

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.source,) if self.target is None else (self.source, self.target)


def read_pairs(files: ParallelFiles) -> Iterator[tuple[str, str]]:
    """The pairs, one after the other.

    Raises:
        ValueError: names the file, and the bad line or both numbers of lines.
    """
    if files.target is None:
        return _columns(files.source)
    return _line_by_line(files.source, files.target)


def _line_by_line(source: Path, target: Path) -> Iterator[tuple[str, str]]:
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
        yield source_line, target_line
    sources = count + (source_line is not None) + sum(1 for _ in source_lines)
    targets = count + (target_line is not None) + sum(1 for _ in target_lines)
    # An empty file is empty above all; whether others have text is known where lines agree.
    agree = sources == targets
    check_has_text(source, sources, has_text=source_has_text or not agree)
    check_has_text(target, targets, has_text=target_has_text or not agree)
    if not agree:
        raise ValueError(
            f"{source} has {sources:,} lines, {target} has {targets:,}: line n of one must be "
            "the translation of line n of the other"
        )


def _columns(path: Path) -> Iterator[tuple[str, str]]:
    number, has_text = 0, False
    for number, line in enumerate(read_lines(path), start=1):
        has_text = has_text or bool(line.strip())
        columns = line.split("\t", 2)
        if len(columns) < 2:
            raise bad_line(path, number, "no tab; every line needs a source, a tab and a target")
        yield columns[0], columns[1]
    check_has_text(path, number, has_text=has_text)

"""Tables in Markdown."""

from collections.abc import Sequence


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """A table; the first ``left`` columns are text, the others numbers."""
    marks = ["---" if column < left else "---:" for column in range(len(headings))]
    lines = [headings, marks, *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

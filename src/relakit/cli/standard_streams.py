"""Standard input and output in place of files."""

import sys
from pathlib import Path

from rich.console import Console


def file_or_stream(path: Path | None) -> Path | None:
    """The path; None for standard input or output, which ``-`` also means."""
    return None if path == Path("-") else path


def shows_bar(messages: Console, output: Path | None) -> bool:
    """Whether a bar can be shown: on a terminal that the output does not go to."""
    is_mixed = output is None and sys.stdout is not None and sys.stdout.isatty()
    return messages.is_terminal and not is_mixed

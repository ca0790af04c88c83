"""Where commands print: results on standard output, messages on standard error.

Text is printed verbatim. File names and translations may contain square brackets, which Rich would
take for markup, or colons around a word, which it would take for an emoji.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def results_console() -> "Console":
    return _plain_console(stderr=False)


def messages_console() -> "Console":
    return _plain_console(stderr=True)


def _plain_console(*, stderr: bool) -> "Console":
    # Imported late: most commands fail or finish in less time than Rich takes to load.
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)

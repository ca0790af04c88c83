"""Lines to translate: their markup, and the text that is translated. No torch here."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from relakit.align.markup import MarkedText, find_markup


@dataclass(frozen=True)
class SourceLine:
    """A line, and the part of it that is translated."""

    marked: MarkedText
    text: str

    @property
    def is_whole(self) -> bool:
        """Whether all its text is translated."""
        return self.text == self.marked.text


def source_lines(
    lines: Iterable[str],
    *,
    keep_markup: bool,
    fit: Callable[[Iterator[str]], Iterator[str]] = iter,
) -> Iterator[SourceLine]:
    """Read lines as they are needed.

    Args:
        lines: one sentence each.
        keep_markup: take markup out of the text.
        fit: processes the texts one for one, such as cutting off what is too long.
    """
    waiting: deque[MarkedText] = deque()

    def texts() -> Iterator[str]:
        for line in lines:
            waiting.append(find_markup(line) if keep_markup else MarkedText(line, line))
            yield waiting[-1].text

    for text in fit(texts()):
        yield SourceLine(waiting.popleft(), text)

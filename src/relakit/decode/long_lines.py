"""Lines that are too long to translate: cut off, left out or refused, and always reported.

Attention takes time and memory that grow with the square of the length, and a model knows nothing
about sentences far longer than those it was trained on. A line of a thousand tokens is a paragraph,
or no text at all.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from relakit.amounts import number_with_noun
from relakit.data.lines import bad_line
from relakit.data.prepared_format import HELD_OUT_TOKENS
from relakit.data.tokenizer import Tokenizer
from relakit.decode.settings import TOO_LONG, TooLong

REPORTED: Final = 5
"""How many lines are reported one by one; the others are only counted."""
_MOST_GROWTH: Final = 3
"""Unicode's composed form has at most this many times as many bytes."""


def default_max_tokens(longest_sentence: int | None) -> int:
    """Most tokens to translate: as many as test sets may have, or as the model was trained on."""
    return max(HELD_OUT_TOKENS, longest_sentence or 0)


def has_at_most(tokenizer: Tokenizer, text: str, max_tokens: int) -> bool:
    """Whether a text has at most ``max_tokens``; reads only the beginning of an endless one."""
    # No token has less than a byte, and a space may come before the first word.
    if _MOST_GROWTH * len(text.encode()) + 1 <= max_tokens:
        return True
    if tokenizer.surely_exceeds(text, max_tokens):
        return False
    return len(tokenizer.encode_batch([text])[0]) <= max_tokens


def crop(tokenizer: Tokenizer, text: str, max_tokens: int) -> str:
    """The whole words at the beginning of a text that have at most ``max_tokens`` together.

    If the first word alone has more, it is cut.
    """
    text = tokenizer.beginning(text, max_tokens)
    spans = tokenizer.encode(text).spans
    if len(spans) <= max_tokens:
        return text
    for index in range(max_tokens, 0, -1):
        start, before = spans[index][0], spans[index - 1][1]
        if start > before:  # a space: words on either side of it do not share tokens
            return text[:before]
    end = spans[max_tokens - 1][1]
    while (excess := len(tokenizer.encode(text[:end]).ids) - max_tokens) > 0:
        end -= excess
    return text[:end]


def fit_lines(
    lines: Iterable[str],
    tokenizer: Tokenizer,
    *,
    max_tokens: int,
    too_long: TooLong = TOO_LONG,
    name: Path | str = "the input",
    tell: Callable[[str], None] = lambda message: None,
) -> Iterator[str]:
    """As many lines as there were, none with more than ``max_tokens`` tokens.

    Args:
        lines: one sentence each.
        tokenizer: the model's tokenizer.
        max_tokens: most tokens in a line.
        too_long: what happens to a line with more.
        name: what messages call the lines.
        tell: called with a message for each of the first long lines, and at the end with one for
            all others.

    Raises:
        ValueError: ``max_tokens`` is below 1; or, with ``"error"``, a line is too long, and it
            names the line.
    """
    if max_tokens < 1:
        raise ValueError(f"max_tokens must be at least 1, got {max_tokens}")
    return _fit(lines, tokenizer, max_tokens, too_long, name, tell)


def _fit(
    lines: Iterable[str],
    tokenizer: Tokenizer,
    max_tokens: int,
    too_long: TooLong,
    name: Path | str,
    tell: Callable[[str], None],
) -> Iterator[str]:
    done = "are left out" if too_long == "skip" else f"are translated up to token {max_tokens:,}"
    found = 0
    for number, line in enumerate(lines, start=1):
        if has_at_most(tokenizer, line, max_tokens):
            yield line
            continue
        most = number_with_noun(max_tokens, "token")
        problem = bad_line(name, number, f"it has more than {most}")
        if too_long == "error":
            raise ValueError(
                f"{problem}; split it, allow more with --max-tokens, or choose --too-long crop or "
                "skip"
            )
        found += 1
        if found <= REPORTED:
            tell(f"{problem}; such lines {done}")
        yield "" if too_long == "skip" else crop(tokenizer, line, max_tokens)
    if found > REPORTED:
        tell(f"{name}: and {found - REPORTED:,} more such lines")

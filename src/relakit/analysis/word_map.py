"""From tokens to words: which word a token belongs to, and attention between words."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Span: TypeAlias = tuple[int, int]
"""Index of the first character, and of the one after the last."""
Floats: TypeAlias = npt.NDArray[np.floating]
Integers: TypeAlias = npt.NDArray[np.integer]

NO_WORD: Final = -1
"""Takes the place of a word's number where there is no word."""
_CLOSING: Final = re.compile(r"[.,;:!?)\]}%»”…]+|'s|n't")
"""Words that attach to the previous word without a space"""
_OPENING: Final = ("(", "[", "{", "«", "„", "‚", "“", "‘")
"""Words that the next word attaches to without a space"""
_GERMAN_QUOTES: Final = {"„": "“", "‚": "‘"}
"""Opening marks and their closing marks, which are opening marks in English"""


def split_words(text: str, *, tokenized: bool = False) -> tuple[Span, ...]:
    """Where the words of a text are.

    Words are separated by spaces. Punctuation marks and symbols at their edges are words of their
    own; a repeated mark ("...") is one word.

    Args:
        text: a sentence.
        tokenized: all words are already separated by spaces, as in the texts of gold alignments:
            leave punctuation where it is.
    """
    chunks = [match.span() for match in re.finditer(r"\S+", text)]
    if tokenized:
        return tuple(chunks)
    return tuple(word for start, end in chunks for word in _detached(text, start, end))


def join_words(words: Sequence[str]) -> tuple[str, tuple[Span, ...]]:
    """The words joined into a sentence with normal spacing, and where each word is in it.

    For texts whose words all have spaces around them, and models trained on ordinary text: closing
    marks attach to the word before them, opening marks to the word after.
    """
    text, spans = "", []
    is_after_opening = True
    closing: list[str] = []  # the marks that close the German quotations open so far
    for word in words:
        closes = bool(closing) and word == closing[-1]
        if not (is_after_opening or closes or _CLOSING.fullmatch(word)):
            text += " "
        spans.append((len(text), len(text) + len(word)))
        text += word
        is_after_opening = word in _OPENING and not closes
        if closes:
            closing.pop()
        elif word in _GERMAN_QUOTES:
            closing.append(_GERMAN_QUOTES[word])
    return text, tuple(spans)


def _detached(text: str, start: int, end: int) -> Iterator[Span]:
    """The marks before a word, the word, and the marks after it."""
    first, last = start, end
    while first < end and _is_mark(text[first]):
        first += 1
    while last > first and _is_mark(text[last - 1]):
        last -= 1
    yield from _runs(text, start, first)
    if first < last:
        yield first, last
        yield from _runs(text, last, end)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _runs(text: str, start: int, end: int) -> Iterator[Span]:
    """Runs of equal characters."""
    for match in re.finditer(r"(.)\1*", text[start:end], re.DOTALL):
        yield start + match.start(), start + match.end()


def words_of_tokens(
    token_spans: Sequence[Span], word_spans: Sequence[Span]
) -> npt.NDArray[np.int64]:
    """The number of the word that each token belongs to, or `NO_WORD`.

    A token belongs to the word that it overlaps. If it overlaps several, it belongs to the one that
    it shares the most characters with, and in a tie to the first. So a word may have no token.

    Args:
        token_spans: where each token is, in order; an empty span is in no word.
        word_spans: where each word is, in order, without overlap.

    Raises:
        ValueError: the words are not in order, or overlap.
    """
    for number, ((_, end), (start, _)) in enumerate(pairwise(word_spans)):
        if start < end:
            raise ValueError(
                f"words must follow each other, but word {number} ends at character {end} and "
                f"word {number + 1} starts at {start}"
            )
    words = np.full(len(token_spans), NO_WORD, dtype=np.int64)
    ends = [end for _, end in word_spans]
    for token, (start, end) in enumerate(token_spans):
        most = 0
        # Start at the first word that ends after the token's start; earlier ones cannot overlap.
        for word in range(bisect_right(ends, start), len(word_spans)):
            shared = min(end, word_spans[word][1]) - max(start, word_spans[word][0])
            if shared > most:
                most, words[token] = shared, word
            if word_spans[word][1] >= end:
                break
    return words


def word_weights(
    weights: Floats,
    target_words: Integers,
    source_words: Integers,
    *,
    target_count: int,
    source_count: int,
) -> npt.NDArray[np.float64]:
    """Attention between words: the sum over a source word's tokens, the mean over a target word's.

    As in Zenkel et al. (2019). Tokens that belong to no word are ignored, and a word without tokens
    has weight 0.

    Args:
        weights: ``[..., target tokens, source tokens]``.
        target_words: the word of each target token, as `words_of_tokens` returns it.
        source_words: the word of each source token.
        target_count: how many target words there are.
        source_count: how many source words there are.

    Returns:
        ``[..., target words, source words]``.
    """
    expected = (len(target_words), len(source_words))
    if weights.shape[-2:] != expected:
        raise ValueError(
            f"weights must have the shape [..., {expected[0]} target tokens, {expected[1]} source "
            f"tokens], as many as the maps have, got {weights.shape}"
        )
    summed = weights.astype(np.float64) @ _membership(source_words, source_count, "source")
    members = _membership(target_words, target_count, "target").T  # [target words, target tokens]
    shares = members / np.maximum(members.sum(1, keepdims=True), 1.0)
    mean: npt.NDArray[np.float64] = shares @ summed
    return mean


def _membership(words: Integers, count: int, side: str) -> npt.NDArray[np.float64]:
    """``[tokens, words]``: 1 where the token belongs to the word."""
    if len(words) and not NO_WORD <= words.min() <= words.max() < count:
        raise ValueError(
            f"{side} words must be from 0 to {count - 1}, or {NO_WORD} for none, got "
            f"{words.min()} to {words.max()}"
        )
    members: npt.NDArray[np.float64] = (words[:, None] == np.arange(count)).astype(np.float64)
    return members

"""Classes of words, and which step of the decoder comes right after a word."""

import unicodedata
from collections.abc import Sequence
from typing import Final

from relakit.analysis.words import NO_WORD, Integers

BEGIN_CLASS: Final = "<s>"
"""Of the first step, before which no word was written."""

COMMAS: Final = frozenset(",،、，､﹐﹑߸፣᠂᠈")
_FULL_STOPS: Final = frozenset(".。．｡।۔።…")


def token_class(word: str) -> str:
    """What a word looks like.

    One of ``comma``, ``full stop`` (dots), ``other mark`` (punctuation and symbols), ``digit``
    (there is one in it), ``capitalised`` and ``word``.
    """
    characters = set(word)
    if characters and characters <= COMMAS:
        return "comma"
    if characters and characters <= _FULL_STOPS:
        return "full stop"
    categories = [unicodedata.category(character) for character in word]
    if all(category[0] in "PS" for category in categories):
        return "other mark"
    if "Nd" in categories:
        return "digit"
    return "capitalised" if categories[0] in ("Lu", "Lt") else "word"


def query_classes(token_words: Integers, classes: Sequence[str]) -> list[str | None]:
    """For each step of the decoder, the class of the word that was finished just before it.

    Args:
        token_words: the word of each target token, as `words_of_tokens` gives it.
        classes: of each target word.

    Returns:
        One more than there are tokens: the first step has `BEGIN_CLASS`; a step in the middle of a
        word, or after a token of no word, has None.
    """
    found: list[str | None] = [None] * (len(token_words) + 1)
    last_tokens = {word: token for token, word in enumerate(token_words.tolist())}
    for word, token in last_tokens.items():
        if word != NO_WORD:
            found[token + 1] = classes[word]
    found[0] = BEGIN_CLASS
    return found

"""Tags and classes of words: from a file, from a tagger, or from what a word looks like.

No torch here.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from relakit.data.lines import read_lines

BEGIN_CLASS: Final = "<s>"
"""The class of a decoder's first step, when no word has been written yet."""
COMMA: Final = "comma"
"""The class of commas."""
COMMAS: Final = frozenset(",،、，､﹐﹑߸፣᠂᠈")
_FULL_STOPS: Final = frozenset(".。．｡।۔።…")


def read_tags(path: Path) -> Iterator[tuple[str, ...]]:
    """The tags of each sentence, from a file with a line per sentence and spaces between tags.

    Args:
        path: plain, gzip or zstd.
    """
    return (tuple(line.split()) for line in read_lines(path))


def tag_words(words: Sequence[str], pipeline: str) -> tuple[str, ...]:
    """The universal part-of-speech tag of each word of a sentence.

    Args:
        words: in order; punctuation marks are words of their own.
        pipeline: a spaCy pipeline: the name of an installed one, such as ``de_core_news_sm``, or a
            folder.

    Raises:
        ValueError: spaCy or the pipeline is not installed, or the pipeline gives no tags.
    """
    nlp = _pipeline(pipeline)
    document = nlp.make_doc("")  # the pipeline's vocabulary, but our words
    document = nlp(type(document)(nlp.vocab, words=list(words)))
    tags = tuple(str(token.pos_) for token in document)
    if not all(tags):
        raise ValueError(
            f"spaCy's pipeline {pipeline} gives no part of speech for {words[tags.index('')]!r}; "
            "choose one with a tagger and an attribute ruler, or a morphologizer"
        )
    return tags


@cache
def _pipeline(name: str) -> Any:
    try:
        spacy: Any = import_module("spacy")
    except ImportError:
        raise ValueError(
            "tagging needs the package spacy: pip install 'relakit[tagger]', or give a file of tags"
        ) from None
    try:
        return spacy.load(name)
    except OSError as error:
        first = str(error).splitlines()[0]
        raise ValueError(f"spaCy cannot load the pipeline {name!r}: {first}") from None


def tag_class(tag: str, word: str) -> str:
    """The class of a tagged word: its tag, but commas are a class of their own, as in Figure 7."""
    is_comma = token_class(word) == COMMA
    return COMMA if is_comma else tag


def token_class(word: str) -> str:
    """What a word looks like.

    One of ``comma``, ``full stop`` (dots), ``other mark`` (punctuation and symbols), ``digit``
    (contains one), ``capitalised`` and ``word``.
    """
    characters = set(word)
    if characters and characters <= COMMAS:
        return COMMA
    if characters and characters <= _FULL_STOPS:
        return "full stop"
    categories = [unicodedata.category(character) for character in word]
    if all(category[0] in "PS" for category in categories):
        return "other mark"
    if "Nd" in categories:
        return "digit"
    return "capitalised" if categories[0] in ("Lu", "Lt") else "word"

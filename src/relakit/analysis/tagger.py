"""Part-of-speech tags from an optional tagger: a pipeline of spaCy."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from relakit.analysis.analysis_pairs import AnalysisPair


def tag_words(words: Sequence[str], pipeline: str) -> tuple[str, ...]:
    """The universal part-of-speech tag of each word of a sentence.

    Args:
        words: in order, punctuation marks as words of their own.
        pipeline: of spaCy, such as ``de_core_news_sm``: the name of an installed one or a folder.

    Raises:
        ValueError: spaCy or the pipeline is not installed, or the pipeline gives no tags.
    """
    nlp = _pipeline(pipeline)
    document = nlp.make_doc("")  # of the pipeline's vocabulary, but our words
    document = nlp(type(document)(nlp.vocab, words=list(words)))
    tags = tuple(str(token.pos_) for token in document)
    if not all(tags):
        raise ValueError(
            f"spaCy's pipeline {pipeline} gives no part of speech for {words[tags.index('')]!r}; "
            "choose one with a tagger and an attribute ruler, or a morphologizer"
        )
    return tags


def tag_pair(pair: AnalysisPair, pipeline: str) -> AnalysisPair:
    """The pair with tags for its target words."""
    words = [pair.target[start:end] for start, end in pair.target_words]
    return replace(pair, target_tags=tag_words(words, pipeline))


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

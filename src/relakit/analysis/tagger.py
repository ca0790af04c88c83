"""Part-of-speech tags from an optional tagger: HanTa, which brings its models along."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from relakit.analysis.analysis_pairs import AnalysisPair

MODELS: Final = MappingProxyType(
    {"de": "morphmodel_ger.pgz", "en": "morphmodel_en.pgz", "nl": "morphmodel_dutch.pgz"}
)
"""By language. German has the tags of STTS, English those of the British National Corpus."""


def tag_words(words: Sequence[str], language: str) -> tuple[str, ...]:
    """One tag for each word of a sentence.

    Args:
        words: in order, punctuation marks as words of their own.
        language: a code in `MODELS`.

    Raises:
        ValueError: there is no tagger for the language, or it is not installed.
    """
    if language not in MODELS:
        raise ValueError(
            f"there is no tagger for language {language!r}; choose one of {', '.join(MODELS)}, or "
            "give a file of tags"
        )
    return tuple(str(tag) for _, _, tag in _tagger(language).tag_sent(list(words)))


def tag_pair(pair: AnalysisPair, language: str) -> AnalysisPair:
    """The pair with tags of its target words, in the target's language."""
    words = [pair.target[start:end] for start, end in pair.target_words]
    return replace(pair, target_tags=tag_words(words, language))


@cache
def _tagger(language: str) -> Any:
    try:
        hanta = import_module("HanTa.HanoverTagger")
    except ImportError:
        raise ValueError(
            "tagging needs the package HanTa: pip install 'relakit[tagger]', or give a file of tags"
        ) from None
    return hanta.HanoverTagger(MODELS[language])

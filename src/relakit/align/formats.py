"""Alignments as lines of text."""

import json
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from relakit.align.alignment import Alignment
from relakit.align.settings import AlignmentFormat

NOTHING: Final = "∅"
"""Stands for the missing partner of a word without links, in ``text``."""
_DIGITS: Final = 4

Words: TypeAlias = tuple[Sequence[str], Sequence[str]]
"""The words, or tokens, of source and target."""
NO_WORDS: Final[Words] = ((), ())


def format_line(
    alignment: Alignment, words: Words, format: AlignmentFormat, *, tokens: Words | None = None
) -> str:
    """Format one line, without its line end.

    Args:
        alignment: the alignment of a pair.
        words: the pair's words, or its tokens if those were aligned; only for ``text``.
        format: see `AlignmentFormat`.
        tokens: tokens as the vocabulary spells them, if those were aligned; only for ``json``.
    """
    if format == "pharaoh":
        return " ".join(f"{source}-{target}" for source, target in alignment.scores)
    if format == "text":
        return _text(alignment, words)
    content = json_content(alignment) | ({} if tokens is None else json_tokens(tokens))
    return json.dumps(content, ensure_ascii=False)


def json_content(alignment: Alignment) -> dict[str, Any]:
    """What a ``json`` object holds about links, between words or tokens."""
    null_rate = alignment.null_rate
    return {
        "links": [
            [source, target, round(score, _DIGITS)]
            for (source, target), score in alignment.scores.items()
        ],
        "unaligned_source": alignment.unaligned_source,
        "unaligned_target": alignment.unaligned_target,
        "null_rate": None if null_rate is None else round(null_rate, _DIGITS),
    }


def json_tokens(tokens: Words) -> dict[str, Any]:
    """What a ``json`` object also holds if tokens are linked."""
    return {"source_tokens": list(tokens[0]), "target_tokens": list(tokens[1])}


def _text(alignment: Alignment, words: Words) -> str:
    sources, targets = words
    linked = [f"{sources[source]}→{targets[target]}" for source, target in alignment.scores]
    lonely = [f"{sources[source]}→{NOTHING}" for source in alignment.unaligned_source]
    lonely += [f"{NOTHING}→{targets[target]}" for target in alignment.unaligned_target]
    return " ".join(linked + lonely)

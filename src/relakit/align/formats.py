"""Alignments as lines of text."""

import json
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from relakit.align.alignment import Alignment
from relakit.align.settings import AlignmentFormat

NOTHING: Final = "∅"
"""Stands for the missing partner of a word without links, in ``text``."""
_DIGITS: Final = 4

Words: TypeAlias = tuple[Sequence[str], Sequence[str]]
"""Of source and target."""


def format_line(alignment: Alignment, words: Words, format: AlignmentFormat) -> str:
    """One line, without its end.

    Args:
        alignment: of a pair.
        words: the pair's words, or its tokens if these were aligned.
        format: see `AlignmentFormat`.
    """
    return _WRITERS[format](alignment, words)


def _pharaoh(alignment: Alignment, words: Words) -> str:
    return " ".join(f"{source}-{target}" for source, target in alignment.scores)


def json_content(alignment: Alignment) -> dict[str, Any]:
    """What the object of format ``json`` holds."""
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


def _json(alignment: Alignment, words: Words) -> str:
    return json.dumps(json_content(alignment))


def _text(alignment: Alignment, words: Words) -> str:
    sources, targets = words
    linked = [f"{sources[source]}→{targets[target]}" for source, target in alignment.scores]
    lonely = [f"{sources[source]}→{NOTHING}" for source in alignment.unaligned_source]
    lonely += [f"{NOTHING}→{targets[target]}" for target in alignment.unaligned_target]
    return " ".join(linked + lonely)


_WRITERS: Final[MappingProxyType[AlignmentFormat, Callable[[Alignment, Words], str]]] = (
    MappingProxyType({"pharaoh": _pharaoh, "json": _json, "text": _text})
)

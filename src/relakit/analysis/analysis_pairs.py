"""Sentence pairs to analyse: texts, their words, and what is known about them."""

from collections.abc import Sequence
from dataclasses import dataclass

from relakit.analysis.alignment import GoldAlignment
from relakit.analysis.words import Span, split_words


@dataclass(frozen=True)
class AnalysisPair:
    """A sentence pair, where its words are, and, if known, gold links and tags.

    Raises:
        ValueError: a link to a word that the sentence does not have, or not one tag for each word.
    """

    source: str
    target: str
    source_words: tuple[Span, ...]
    """Of each word in `source`, in order"""
    target_words: tuple[Span, ...]
    gold: GoldAlignment | None = None
    target_tags: tuple[str, ...] | None = None
    """Of each target word"""

    def __post_init__(self) -> None:
        if self.gold is not None:
            check_links(self.gold, len(self.source_words), len(self.target_words))
        if self.target_tags is not None:
            check_tags(self.target_tags, len(self.target_words))

    @classmethod
    def from_texts(cls, source: str, target: str, *, tokenized: bool = False) -> "AnalysisPair":
        """A pair of which nothing but the texts is known; its words are those of `split_words`."""
        return cls(
            source,
            target,
            split_words(source, tokenized=tokenized),
            split_words(target, tokenized=tokenized),
        )


def check_links(gold: GoldAlignment, source_words: int, target_words: int) -> None:
    """Raise ValueError for a link to a word that a sentence of so many words does not have."""
    counts = source_words, target_words
    for link in sorted(gold.possible):
        for side, word, count in zip(("source", "target"), link, counts, strict=True):
            if not 0 <= word < count:
                raise ValueError(
                    f"the link of source word {link[0]} and target word {link[1]} (from 0) is "
                    f"out of range, the {side} has {count} words; check where the links' "
                    "numbers start, which side comes first and how words are split"
                )


def check_tags(tags: Sequence[str], target_words: int) -> None:
    """Raise ValueError where there is not one tag for each target word."""
    if len(tags) != target_words:
        raise ValueError(
            f"there are {len(tags)} tags, the target has {target_words} words; check how words "
            "are split"
        )

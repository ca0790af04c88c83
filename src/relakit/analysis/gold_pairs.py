"""Sentence pairs with gold links, from files or from the generated corpus."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from relakit.analysis.alignment import GoldAlignment
from relakit.analysis.pharaoh import FirstWord, read_pharaoh
from relakit.analysis.words import Span, split_words
from relakit.data.corpus import ParallelFiles, read_pairs
from relakit.data.generated import GeneratedPair


@dataclass(frozen=True)
class GoldPair:
    """A sentence pair, where its words are, and which of them belong together.

    Raises:
        ValueError: a link to a word that the sentence does not have.
    """

    source: str
    target: str
    source_words: tuple[Span, ...]
    """Of each word in `source`, in order"""
    target_words: tuple[Span, ...]
    gold: GoldAlignment

    def __post_init__(self) -> None:
        counts = len(self.source_words), len(self.target_words)
        for link in sorted(self.gold.possible):
            for side, word, count in zip(("source", "target"), link, counts, strict=True):
                if not 0 <= word < count:
                    raise ValueError(
                        f"the link of source word {link[0]} and target word {link[1]} (from 0) is "
                        f"out of range, the {side} has {count} words; check where the links' "
                        "numbers start, which side comes first and how words are split"
                    )


def generated_gold_pair(pair: GeneratedPair) -> GoldPair:
    """A pair of the generated corpus; all its links are sure."""
    return GoldPair(
        pair.source_text,
        pair.target_text,
        pair.source_spans,
        pair.target_spans,
        GoldAlignment(frozenset(pair.links)),
    )


def read_gold_pairs(
    files: ParallelFiles,
    gold: Path,
    *,
    first: FirstWord = 0,
    reverse: bool = False,
    tokenized: bool = False,
) -> Iterator[GoldPair]:
    """The pairs of a parallel corpus with the links of a file in Pharaoh's format.

    Args:
        files: the sentences.
        gold: the links, line by line.
        first: the number of a sentence's first word in ``gold``.
        reverse: the links name the target word first.
        tokenized: see `split_words`.

    Raises:
        ValueError: the file, and the line or both numbers of lines, where something is wrong.
    """
    pairs, alignments = read_pairs(files), read_pharaoh(gold, first=first)
    for number, (pair, links) in enumerate(zip_longest(pairs, alignments), start=1):
        if pair is None or links is None:
            sentences = number - (pair is None) + sum(1 for _ in pairs)
            lines = number - (links is None) + sum(1 for _ in alignments)
            raise ValueError(
                f"{files.source} has {sentences:,} lines, {gold} has {lines:,}: line n of the "
                "links has to belong to sentence pair n"
            )
        source, target = pair
        try:
            yield GoldPair(
                source,
                target,
                split_words(source, tokenized=tokenized),
                split_words(target, tokenized=tokenized),
                links.reversed() if reverse else links,
            )
        except ValueError as error:
            raise ValueError(f"{gold}, line {number:,}: {error}") from None

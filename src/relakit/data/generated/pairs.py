"""Sentence pairs with gold links, tags and text."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, TypeAlias

from relakit.data.generated.phrases import Phrase
from relakit.data.generated.sentences import SentenceSampler
from relakit.data.generated.words import Token

Split: TypeAlias = Literal["train", "valid", "test"]
SPLITS: Final[tuple[Split, ...]] = ("train", "valid", "test")
Noise: TypeAlias = Literal["shuffled", "inserted", "truncated", "language", "copied"]
"""What was done to a pair: another pair's target; a phrase put into the target; the target's end
cut off; a target in a third language; the source as target."""

PUNCTUATION: Final = frozenset(".,?!")

# Shares of all sentences, in percent: the rest is for training.
_VALID_PERCENT: Final = 10
_TEST_PERCENT: Final = 10


_LONGEST: Final = 28
"""English words of the longest sentences."""


@dataclass(frozen=True)
class GeneratedPair:
    """An English sentence, its German translation, and what is known about the two."""

    source: tuple[str, ...]
    """English words; punctuation marks are words of their own."""
    target: tuple[str, ...]
    """German words."""
    links: tuple[tuple[int, int], ...]
    """Sure links (source word, target word), from 0, sorted."""
    source_tags: tuple[str, ...]
    """Universal part-of-speech tags."""
    target_tags: tuple[str, ...]
    noise: Noise | None = None
    """What was planted, or None for a clean pair."""

    @property
    def source_text(self) -> str:
        return join_words(self.source)

    @property
    def target_text(self) -> str:
        return join_words(self.target)

    @property
    def source_spans(self) -> tuple[tuple[int, int], ...]:
        """Start and end of every source word in `source_text`."""
        return word_spans(self.source)

    @property
    def target_spans(self) -> tuple[tuple[int, int], ...]:
        """Start and end of every target word in `target_text`."""
        return word_spans(self.target)

    @property
    def unaligned_source(self) -> tuple[int, ...]:
        """Source words without counterpart, such as the "does" of a question."""
        linked = {left for left, _ in self.links}
        return tuple(word for word in range(len(self.source)) if word not in linked)

    @property
    def unaligned_target(self) -> tuple[int, ...]:
        """Target words without counterpart, such as the comma before a relative clause."""
        linked = {right for _, right in self.links}
        return tuple(word for word in range(len(self.target)) if word not in linked)


def join_words(words: Sequence[str]) -> str:
    """The words as written text: spaces between them, none before punctuation."""
    return "".join(
        word if word in PUNCTUATION or not number else f" {word}"
        for number, word in enumerate(words)
    )


def word_spans(words: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Start and end of every word in `join_words(words)`."""
    spans = []
    end = 0
    for number, word in enumerate(words):
        start = end if word in PUNCTUATION or not number else end + 1
        end = start + len(word)
        spans.append((start, end))
    return tuple(spans)


def split_words(text: str) -> tuple[str, ...]:
    """The words of a text that `join_words` wrote."""
    words: list[str] = []
    for chunk in text.split():
        stem = chunk.rstrip(".,?!")
        if stem:
            words.append(stem)
        words += chunk[len(stem) :]
    return tuple(words)


def generate_pairs(count: int, *, seed: int = 1, split: Split = "train") -> Iterator[GeneratedPair]:
    """The first `count` pairs of the split's sequence for this seed.

    A sentence belongs to the same split under every seed, decided by a checksum of its German
    words; the German follows from the English, so splits share no sentence on either side.
    In `valid` and `test` no pair comes twice, for which every pair's checksum is remembered;
    `train` repeats short sentences now and then and needs no memory.
    """
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
    return _draw_pairs(count, seed, split)


def _draw_pairs(count: int, seed: int, split: Split) -> Iterator[GeneratedPair]:
    # A string seeds through SHA-512: the same everywhere, and unlike for every seed and split.
    sampler = SentenceSampler(Random(f"relakit {split} {seed}").random)
    low, high = _bounds(split)
    seen: set[tuple[int, int]] | None = None if split == "train" else set()
    made = 0
    while made < count:
        phrase = sampler.sentence()
        if len(phrase.source) > _LONGEST:
            continue
        # In lower case, as capitals depend on the place in the sentence.
        text = " ".join([word for word, _ in phrase.target]).lower().encode()
        checksum = zlib.crc32(text)
        if not low <= checksum % 100 < high:
            continue
        if seen is not None:
            key = (checksum, zlib.adler32(text))
            if key in seen:
                continue
            seen.add(key)
        made += 1
        yield _to_pair(phrase)


def _bounds(split: Split) -> tuple[int, int]:
    """The checksums, modulo 100, of the split's sentences."""
    if split == "valid":
        return 0, _VALID_PERCENT
    if split == "test":
        return _VALID_PERCENT, _VALID_PERCENT + _TEST_PERCENT
    return _VALID_PERCENT + _TEST_PERCENT, 100


def _to_pair(phrase: Phrase) -> GeneratedPair:
    source, source_tags = _words_and_tags(phrase.source)
    target, target_tags = _words_and_tags(phrase.target)
    return GeneratedPair(source, target, tuple(sorted(phrase.links)), source_tags, target_tags)


def _words_and_tags(tokens: Sequence[Token]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    words, tags = zip(*tokens, strict=True)
    first = words[0]
    return (first[0].upper() + first[1:], *words[1:]), tags

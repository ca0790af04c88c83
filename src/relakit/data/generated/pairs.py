"""Sentence pairs with gold links, tags and text."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from relakit.data.generated.phrases import Phrase
from relakit.data.generated.sentences import SentenceSampler
from relakit.data.generated.words import Token
from relakit.data.generator_settings import SEED, Split, known_split
from relakit.data.noise_draw import NoiseKind

PUNCTUATION: Final = frozenset(".,?!")

# Percentages of all sentences; the rest is for training.
_VALID_PERCENT: Final = 10
_TEST_PERCENT: Final = 10

_LONGEST: Final = 28
"""Most English words in a sentence."""


class PlantedNoise(NamedTuple):
    """What was done to a pair to make it noisy."""

    kind: NoiseKind
    what: str
    """For people: which words, or from which line."""


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
    noise: PlantedNoise | None = None
    """None for a clean pair."""

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


def generate_pairs(
    count: int, *, seed: int = SEED, split: Split = "train"
) -> Iterator[GeneratedPair]:
    """The first `count` pairs of the split's sequence for this seed.

    A checksum of its German words decides which split a sentence belongs to, whatever the seed; the
    German follows from the English, so splits share no sentence on either side. In `valid` and
    `test` no pair occurs twice, which takes a checksum per pair in memory; `train` repeats short
    sentences now and then, and needs no such memory.
    """
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    return _draw_pairs(count, seed, known_split(split))


def _draw_pairs(count: int, seed: int, split: Split) -> Iterator[GeneratedPair]:
    # Random hashes a string seed with SHA-512: the same on every machine, and every seed and split
    # gets its own sequence.
    sampler = SentenceSampler(Random(f"relakit {split} {seed}").random)
    low, high = _bounds(split)
    seen: set[tuple[int, int]] | None = None if split == "train" else set()
    made = 0
    while made < count:
        phrase = sampler.sentence()
        if len(phrase.source) > _LONGEST:
            continue
        # In lower case, since capitals depend on the place in the sentence.
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

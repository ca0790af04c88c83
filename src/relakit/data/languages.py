"""Tells which of two languages a sentence is in, if any, by its character n-grams. No torch here.

A model of a language predicts each character from the three before it. N-gram counts are mixed with
those of shorter n-grams (Witten and Bell 1991): the more different characters have followed a
context, the likelier the next one is new.
"""

import json
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from relakit.data.json_file import read_json
from relakit.files.writing import write_whole

LANGUAGES_FILE: Final = "languages.json"
FORMAT: Final = "relakit-languages"
VERSION: Final = 1
ORDER: Final = 4
"""Characters in the longest n-grams."""
MOST_NGRAMS: Final = 30_000
"""Most n-grams kept for a language: the most frequent ones."""
MOST_SENTENCES: Final = 10_000
"""Most sentences to learn a language from; more make no difference."""
LONGEST: Final = 1000
"""Most characters of a sentence that are looked at."""
_CHARACTERS: Final = 1 << 16
"""How many different characters are assumed to exist."""
_LETTERS_ALONE: Final = 0.9
"""How likely text in neither language is to be written with the letters of both."""
_REMEMBERED: Final = 200_000
"""Most n-grams whose probabilities are cached."""


class LanguageModel:
    """How likely characters are to follow each other in a language."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        """``counts``: how often each n-gram of up to `ORDER` characters occurs."""
        self.counts: Final = counts
        self._totals: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        for ngram, count in counts.items():
            self._totals[ngram[:-1]] += count
            self._kinds[ngram[:-1]] += 1

    @classmethod
    def learn(cls, sentences: Iterable[str]) -> "LanguageModel":
        """Count the n-grams of sentences; if there are many, of a sample spread over all of them.

        Raises:
            ValueError: there is no text.
        """
        counts: Counter[str] = Counter()
        for sentence in _some(text for text in sentences if text.strip()):
            text = _plain(sentence)
            for size in range(1, ORDER + 1):
                counts.update(text[start : start + size] for start in range(len(text) - size + 1))
        if not counts:
            raise ValueError("there is no text to learn a language from")
        ordered = sorted(counts.items(), key=lambda entry: (len(entry[0]) > 1, -entry[1], entry[0]))
        return cls(dict(ordered[:MOST_NGRAMS]))

    def probability(self, ngram: str) -> float:
        """The probability of the last character after the others."""
        if not ngram:
            return 1 / _CHARACTERS
        shorter = self.probability(ngram[1:])
        total, kinds = self._totals[ngram[:-1]], self._kinds[ngram[:-1]]
        if not total:
            return shorter
        return (self.counts.get(ngram, 0) + kinds * shorter) / (total + kinds)

    def letter_probability(self, character: str) -> float:
        """The probability of a character in any position."""
        return self.counts.get(character, 0) / self._totals[""]


class LanguagePair:
    """The languages of a corpus: how likely each side of a pair is to be in its own language."""

    def __init__(self, source: LanguageModel, target: LanguageModel) -> None:
        self.source: Final = source
        self.target: Final = target
        self._remembered: dict[str, tuple[float, float, float]] = {}

    @classmethod
    def learn(cls, sources: Iterable[str], targets: Iterable[str]) -> "LanguagePair":
        """Learn both from sentences, which need not be pairs; see `LanguageModel.learn`."""
        return cls(LanguageModel.learn(sources), LanguageModel.learn(targets))

    def log_odds(self, source: str, target: str) -> tuple[float, float]:
        """The log-odds that the source is in its language, and the target in its own.

        They weigh a text's own language against the other one and against neither, in nats per
        character: above 0, it is the likeliest of the three. Text in neither language is text whose
        characters come in any order. Blank text gets 0.
        """
        first, second, neither, size = self._likelihoods(source)
        of_source = _per_character(first, second, neither, size)
        first, second, neither, size = self._likelihoods(target)
        return of_source, _per_character(second, first, neither, size)

    def _likelihoods(self, sentence: str) -> tuple[float, float, float, int]:
        """Log-likelihoods in the source language, the target language and neither; characters."""
        text = _plain(sentence)
        source = target = neither = 0.0
        for end in range(2, len(text) + 1):  # the first character is a space
            logs = self._logs(text[max(0, end - ORDER) : end])
            source += logs[0]
            target += logs[1]
            neither += logs[2]
        return source, target, neither, max(0, len(text) - 1)

    def _logs(self, ngram: str) -> tuple[float, float, float]:
        found = self._remembered.get(ngram)
        if found is None:
            if len(self._remembered) == _REMEMBERED:
                self._remembered.clear()
            models = (self.source, self.target)
            letter = sum(model.letter_probability(ngram[-1]) for model in models) / len(models)
            neither = _LETTERS_ALONE * letter + (1 - _LETTERS_ALONE) / _CHARACTERS
            found = self._remembered[ngram] = (
                math.log(self.source.probability(ngram)),
                math.log(self.target.probability(ngram)),
                math.log(neither),
            )
        return found

    @cached_property
    def content(self) -> dict[str, Any]:
        """Both models as JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "source": dict(self.source.counts),
            "target": dict(self.target.counts),
        }

    @classmethod
    def from_content(cls, content: Any, name: str) -> "LanguagePair":
        """Build the pair from JSON; ValueError with the file's name if it is something else."""
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f'{name} is no such file: it has no "format": "{FORMAT}"')
        if content.get("version") != VERSION:
            raise ValueError(
                f"{name} has version {content.get('version')!r} of the format, this relakit reads "
                f"version {VERSION}"
            )
        sides = [content.get(side) for side in ("source", "target")]
        for side, counts in zip(("source", "target"), sides, strict=True):
            if not _are_counts(counts):
                raise ValueError(
                    f"{name}: {side} must hold n-grams of up to {ORDER} characters and how often "
                    "each occurs"
                )
        return cls(*(LanguageModel(counts) for counts in sides if counts is not None))

    def save(self, path: Path) -> None:
        """Write the pair as JSON."""
        write_whole(path, (json.dumps(self.content, ensure_ascii=False) + "\n").encode())

    @classmethod
    def load(cls, path: Path) -> "LanguagePair":
        """Read what `save` wrote; OSError or ValueError if that fails."""
        return cls.from_content(read_json(path), str(path))


def _are_counts(counts: Any) -> bool:
    return isinstance(counts, dict) and any(len(ngram) == 1 for ngram in counts) and all(
        1 <= len(ngram) <= ORDER and type(count) is int and count > 0
        for ngram, count in counts.items()
    )  # fmt: skip


def _per_character(own: float, other: float, neither: float, size: int) -> float:
    if not size:
        return 0.0
    most = max(other, neither)
    against = most + math.log(math.exp(other - most) + math.exp(neither - most))
    return (own - against) / size


def _plain(sentence: str) -> str:
    """The sentence without case, exact digits and extra spaces, which do not show its language."""
    composed = unicodedata.normalize("NFC", sentence[: 2 * LONGEST]).lower()
    words = "".join("0" if char.isdigit() else char for char in composed).split()
    return f" {' '.join(words)} "[:LONGEST] if words else ""


def _some(sentences: Iterable[str]) -> list[str]:
    """At most `MOST_SENTENCES`, spread evenly: every second, fourth, eighth ... of a long text."""
    kept: list[str] = []
    step = 1
    for number, sentence in enumerate(sentences):
        if number % step:
            continue
        if len(kept) == MOST_SENTENCES:
            kept, step = kept[::2], 2 * step
            if number % step:
                continue
        kept.append(sentence)
    return kept

"""Sentence pairs as token ids, and which pairs are kept: in one place for all who ask."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from relakit.data.tokenizer_pair import Tokenizers


class EncodedPairs(NamedTuple):
    """What is kept of some pairs."""

    numbers: list[int]
    """Of each, among all that were read; the first is 1"""
    sources: list[list[int]]
    targets: list[list[int]]


@dataclass
class PairEncoder:
    """Encodes pairs piece by piece, and counts those that have an empty side or are too long."""

    tokenizers: Tokenizers
    longest: int
    """Tokens of a side, at most"""
    truncates: bool
    """Cut longer ones off; else their pairs are left out"""
    read: int = field(default=0, init=False)
    empty: int = field(default=0, init=False)
    overlong: int = field(default=0, init=False)

    def encode(self, pairs: Sequence[tuple[str, str]]) -> EncodedPairs:
        """The next pairs, without those that are left out."""
        sides = self.tokenizers.source, self.tokenizers.target
        numbers: list[int] = []
        encodable: list[tuple[str, str]] = []
        for number, pair in enumerate(pairs, start=self.read + 1):
            both = list(zip(sides, pair, strict=True))
            if self.truncates:
                source, target = (one.beginning(text, self.longest) for one, text in both)
            elif any(one.surely_exceeds(text, self.longest) for one, text in both):
                self.overlong += 1  # endless lines are not encoded
                continue
            else:
                source, target = pair
            numbers.append(number)
            encodable.append((source, target))
        self.read += len(pairs)
        encoded = (
            one.encode_batch([pair[side] for pair in encodable]) for side, one in enumerate(sides)
        )
        kept = EncodedPairs([], [], [])
        for number, source_ids, target_ids in zip(numbers, *encoded, strict=True):
            if self._fits(source_ids, target_ids):
                kept.numbers.append(number)
                kept.sources.append(source_ids[: self.longest])
                kept.targets.append(target_ids[: self.longest])
        return kept

    def _fits(self, source: list[int], target: list[int]) -> bool:
        if not source or not target:
            self.empty += 1
            return False
        if max(len(source), len(target)) > self.longest:
            self.overlong += 1
            return self.truncates
        return True

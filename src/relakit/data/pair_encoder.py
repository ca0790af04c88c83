"""Encodes sentence pairs as token ids and decides which to keep, in one place for all callers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from relakit.amounts import number_with_noun
from relakit.data.prepared_format import SplitCounts
from relakit.data.tokenizer_pair import Tokenizers


class KeptPairs(NamedTuple):
    """The pairs that are kept, as token ids."""

    numbers: list[int]
    """The number of each pair among all that were read; the first is 1"""
    sources: list[list[int]]
    targets: list[list[int]]


@dataclass
class PairEncoder:
    """Encodes pairs piece by piece, and counts what is kept and left out."""

    tokenizers: Tokenizers
    longest: int
    """Most tokens on a side"""
    truncates: bool
    """Whether longer sides are cut off; otherwise their pairs are left out"""
    read: int = field(default=0, init=False)
    kept: int = field(default=0, init=False)
    empty: int = field(default=0, init=False)
    overlong: int = field(default=0, init=False)
    source_tokens: int = field(default=0, init=False)
    target_tokens: int = field(default=0, init=False)

    def encode(self, pairs: Sequence[tuple[str, str]]) -> KeptPairs:
        """Encode the next pairs, without those that are left out."""
        sides = self.tokenizers.source, self.tokenizers.target
        numbers: list[int] = []
        encodable: list[tuple[str, str]] = []
        for number, pair in enumerate(pairs, start=self.read + 1):
            both = list(zip(sides, pair, strict=True))
            if self.truncates:
                source, target = (one.beginning(text, self.longest) for one, text in both)
            elif any(one.surely_exceeds(text, self.longest) for one, text in both):
                self.overlong += 1  # very long lines are not even encoded
                continue
            else:
                source, target = pair
            numbers.append(number)
            encodable.append((source, target))
        self.read += len(pairs)
        encoded = (
            one.encode_batch([pair[side] for pair in encodable]) for side, one in enumerate(sides)
        )
        kept = KeptPairs([], [], [])
        for number, source_ids, target_ids in zip(numbers, *encoded, strict=True):
            if self._fits(source_ids, target_ids):
                kept.numbers.append(number)
                kept.sources.append(source_ids[: self.longest])
                kept.targets.append(target_ids[: self.longest])
        self.kept += len(kept.numbers)
        self.source_tokens += sum(map(len, kept.sources))
        self.target_tokens += sum(map(len, kept.targets))
        return kept

    def counts(self, split: str, *, where: str = "") -> SplitCounts:
        """What happened to the pairs of a split.

        Raises:
            ValueError: no pair is left; ``where``, such as " in FILE", says where they were read.
        """
        if not self.kept:
            raise ValueError(
                f"no pair of {split} is left: of {number_with_noun(self.read, 'pair')}{where}, "
                f"{self.empty:,} have an empty side and {self.overlong:,} have more than "
                f"{number_with_noun(self.longest, 'token')}; give other files, or a larger "
                "max_tokens"
            )
        return SplitCounts(
            read=self.read,
            kept=self.kept,
            empty=self.empty,
            overlong=self.overlong,
            source_tokens=self.source_tokens,
            target_tokens=self.target_tokens,
        )

    def _fits(self, source: list[int], target: list[int]) -> bool:
        if not source or not target:
            self.empty += 1
            return False
        if max(len(source), len(target)) > self.longest:
            self.overlong += 1
            return self.truncates
        return True

"""Cuts a stream of pairs into shards. No torch here."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relakit.data.parallel_files import NumberedPair, ParallelFiles, read_numbered_pairs

SHARD_PAIRS: Final = 2000
"""Default number of pairs in a shard: seconds of work."""
SHARD_BYTES: Final = 1 << 22
"""Amount of text that ends a shard early, so that memory use does not depend on line lengths."""


@dataclass(frozen=True)
class Shard:
    """A run of consecutive pairs."""

    index: int
    """From 0"""
    pairs: Sequence[NumberedPair]

    def in_words(self, unit: str) -> str:
        """The shard's place in the input, such as ``lines 2,001 to 4,000``."""
        first, last = self.pairs[0].number, self.pairs[-1].number
        if first == last:
            return f"{unit} {first:,}"
        return f"{unit}s {first:,} to {last:,}"

    def to_json(self) -> bytes:
        return json.dumps([self.index, self.pairs], ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, content: bytes) -> "Shard":
        index, pairs = json.loads(content)
        return cls(index, [NumberedPair(*pair) for pair in pairs])


def cut_into_shards(pairs: Iterable[NumberedPair], most: int = SHARD_PAIRS) -> Iterator[Shard]:
    """Shards of ``most`` pairs, or fewer if they have much text; pairs are read on demand."""
    collected: list[NumberedPair] = []
    index = size = 0
    for pair in pairs:
        collected.append(pair)
        size += len(pair.source) + len(pair.target)
        if len(collected) == most or size >= SHARD_BYTES:
            yield Shard(index, collected)
            collected, size = [], 0
            index += 1
    if collected:
        yield Shard(index, collected)


@dataclass(frozen=True)
class Survey:
    """What the first pass over the input found."""

    pairs: int
    digests: list[str]
    """One per shard: the digest of all texts up to its end, and of their numbers"""

    @property
    def shards(self) -> int:
        return len(self.digests)

    @property
    def digest(self) -> str:
        """The digest of the whole input, however it is cut."""
        return self.digests[-1] if self.digests else PairDigest().value


def check_read_twice(
    path: Path, what: str = "pairs", *, option: str | None = None, advice: str = ""
) -> None:
    """Raise ValueError for an input that can be read only once, such as a pipe.

    Args:
        path: the input.
        what: what it holds, several of them.
        option: the command-line option that names it.
        advice: what else to do about it than to make a file.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        name = str(path) if option is None else f"{option} {path}"
        raise ValueError(
            f"{name} is no regular file: {what} are read twice, which a pipe or a device does not "
            f"allow; put them into a file, plain, gzip or zstd{advice}"
        )


def survey(files: ParallelFiles, most: int) -> Survey:
    """Read the whole input once, to find anything wrong with it before any work starts.

    ``most``: the largest number of pairs in a shard.

    Raises:
        OSError, ValueError: see `read_numbered_pairs`; or an input cannot be read twice.
    """
    for path in files.paths:
        check_read_twice(path)
    digest = PairDigest()
    count = 0
    digests = []
    for shard in cut_into_shards(read_numbered_pairs(files), most):
        digests.append(digest.after(shard.pairs))
        count += len(shard.pairs)
    return Survey(count, digests)


def surveyed_shards(files: ParallelFiles, most: int, found: Survey) -> Iterator[Shard]:
    """Read the shards again, and yield only those that have not changed since the survey.

    Raises:
        ValueError: the input has changed. The shards yielded before that are of the same text.
    """
    digest = PairDigest()
    count = 0
    for shard in cut_into_shards(read_numbered_pairs(files), most):
        if found.digests[shard.index : shard.index + 1] != [digest.after(shard.pairs)]:
            raise _changed(files)
        count += 1
        yield shard
    if count != found.shards:
        raise _changed(files)


def _changed(files: ParallelFiles) -> ValueError:
    names = " or ".join(map(str, files.paths))
    return ValueError(f"{names} has changed while it was read; start again with --restart")


class PairDigest:
    """A running digest of pairs."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def after(self, pairs: Iterable[NumberedPair]) -> str:
        """Add these pairs, and return the digest of all pairs so far."""
        for number, source, target in pairs:
            # No text contains a line end.
            self._hash.update(f"{number}\n{source}\n{target}\n".encode())
        return self.value

    @property
    def value(self) -> str:
        return self._hash.hexdigest()

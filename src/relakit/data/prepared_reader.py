"""Open a prepared corpus: the token ids of its splits, mapped into memory, and its tokenizer."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from relakit.data.prepared_format import (
    DOCUMENT_NAME,
    OFFSET_TYPE,
    SIDES,
    CorpusDocument,
    PrepareSettings,
    Side,
    SplitCounts,
    lines_name,
    offsets_name,
    read_document,
    tokens_name,
)
from relakit.data.tokenizer import SPECIAL_TOKENS, UNKNOWN, Tokenizer
from relakit.data.tokenizer_pair import (
    Tokenizers,
    exchanged,
    load_tokenizers,
    tokenizer_files,
    tokenizers_digest,
)

Integers = npt.NDArray[np.integer]

CHECKED_AT_ONCE: Final = 1 << 22
"""Tokens in one step of a check, which must not load all of a large corpus into memory."""


class EncodedSide:
    """The sentences of a split in one language, one after the other in one file."""

    def __init__(self, tokens: Integers, offsets: npt.NDArray[np.int64]) -> None:
        self.tokens: Final = tokens
        self.offsets: Final = offsets
        self.lengths: Final[npt.NDArray[np.int32]] = np.diff(offsets).astype(np.int32)
        """Tokens per sentence."""

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
        start, end = self.offsets[index], self.offsets[index + 1]
        return self.tokens[start:end].astype(np.int64)


class EncodedSplit:
    """Sentence pairs as token ids, without BEGIN and END."""

    def __init__(
        self,
        name: str,
        source: EncodedSide,
        target: EncodedSide,
        lines: npt.NDArray[np.int64],
        counts: SplitCounts,
    ) -> None:
        self.name: Final = name
        self.source_side: Final = source
        self.target_side: Final = target
        self.lines: Final = lines
        """The line of the corpus that each pair was on, from 1."""
        self.counts: Final = counts

    def __len__(self) -> int:
        return len(self.lines)

    def source(self, index: int) -> npt.NDArray[np.int64]:
        return self.source_side[self._checked(index)]

    def target(self, index: int) -> npt.NDArray[np.int64]:
        return self.target_side[self._checked(index)]

    @property
    def source_lengths(self) -> npt.NDArray[np.int32]:
        return self.source_side.lengths

    @property
    def target_lengths(self) -> npt.NDArray[np.int32]:
        return self.target_side.lengths

    @property
    def longest(self) -> int:
        """Tokens in the longest sentence on either side."""
        return int(max(self.source_lengths.max(), self.target_lengths.max()))

    def _checked(self, index: int) -> int:
        if not 0 <= index < len(self):
            raise IndexError(f"{self.name} has {len(self):,} pairs, there is no pair {index}")
        return index


class PreparedCorpus:
    """A folder written by `relakit prepare`; in reverse, its sources become the targets."""

    def __init__(
        self,
        folder: Path,
        document: CorpusDocument,
        tokenizers: Tokenizers,
        *,
        reverse: bool = False,
    ) -> None:
        self.folder: Final = folder
        self.tokenizers: Final = exchanged(tokenizers) if reverse else tokenizers
        """For the side to translate from and the side to translate to; often the same."""
        self._document = document
        self._sides: Final = SIDES[::-1] if reverse else SIDES
        """The folder's names for the side to translate from and the side to translate to."""
        self._opened: dict[str, EncodedSplit] = {}

    @classmethod
    def load(cls, folder: Path, *, reverse: bool = False) -> "PreparedCorpus":
        """Open a prepared corpus.

        ``reverse``: translate from what was the target when the corpus was prepared.

        Raises:
            ValueError: names what is missing, truncated or from another corpus.
        """
        document = read_document(folder)
        tokenizers = load_tokenizers(folder)
        if tokenizers_digest(folder) != document.tokenizer_sha256:
            names = " or ".join(map(str, tokenizer_files(folder)))
            raise ValueError(
                f"{names} is not the tokenizer that this corpus was encoded with; prepare the "
                "corpus again"
            )
        return cls(folder, document, tokenizers, reverse=reverse)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of both languages, or of the language to translate to."""
        return self.tokenizers.target

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._document.splits)

    @property
    def fingerprint(self) -> str:
        """A checksum of the tokens of all splits, wherever the corpus is stored."""
        checksum = hashlib.blake2b(self._document.tokenizer_sha256.encode(), digest_size=32)
        for split in sorted(self.splits):
            for side in self._sides:
                for name in (offsets_name(split, side), tokens_name(split, side)):
                    with (self.folder / name).open("rb") as file:
                        while chunk := file.read(1 << 20):
                            checksum.update(chunk)
        return checksum.hexdigest()

    @property
    def settings(self) -> PrepareSettings:
        return self._document.settings

    @property
    def source_language(self) -> str | None:
        return self._language(self._sides[0])

    @property
    def target_language(self) -> str | None:
        return self._language(self._sides[1])

    def _language(self, side: Side) -> str | None:
        settings = self.settings
        return settings.source_language if side == "source" else settings.target_language

    @property
    def train(self) -> EncodedSplit:
        return self.split("train")

    @property
    def valid(self) -> EncodedSplit:
        return self.split("valid")

    @property
    def test(self) -> EncodedSplit:
        return self.split("test")

    def split(self, name: str) -> EncodedSplit:
        """Open a split; the first time, all its ids are checked.

        Raises:
            ValueError: there is no such split, or its files do not fit together.
        """
        if name not in self._document.splits:
            raise ValueError(
                f"{self.folder} has no split {name!r}, it has {', '.join(self.splits) or 'none'}; "
                "prepare the corpus again, with it"
            )
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def _open(self, name: str) -> EncodedSplit:
        counts = self._document.splits[name]
        from_side, to_side = self._sides
        if from_side == "target":
            source_tokens, target_tokens = counts.target_tokens, counts.source_tokens
            counts = replace(counts, source_tokens=source_tokens, target_tokens=target_tokens)
        return EncodedSplit(
            name,
            self._side(name, from_side, counts.kept),
            self._side(name, to_side, counts.kept),
            self._map(self.folder / lines_name(name), OFFSET_TYPE, counts.kept),
            counts,
        )

    def _side(self, split: str, side: Side, pairs: int) -> EncodedSide:
        offsets_path = self.folder / offsets_name(split, side)
        offsets = self._map(offsets_path, OFFSET_TYPE, pairs + 1)
        lengths = np.diff(offsets)
        if offsets[0] != 0 or lengths.min() < 1:
            raise ValueError(
                f"{offsets_path} is damaged: its offsets do not grow from 0; prepare the corpus "
                "again"
            )
        longest, allowed = int(lengths.argmax()), self.settings.longest_sentence(split)
        if lengths[longest] > allowed:
            raise ValueError(
                f"{offsets_path} is damaged: sentence {longest + 1:,} has {lengths[longest]:,} "
                f"tokens, {DOCUMENT_NAME} allows {allowed:,}; prepare the corpus again"
            )
        tokens_path = self.folder / tokens_name(split, side)
        tokens = self._map(tokens_path, self._document.token_type, int(offsets[-1]))
        is_source = side == self._sides[0]
        tokenizer = self.tokenizers.source if is_source else self.tokenizers.target
        check_ids(tokens_path, tokens, offsets, tokenizer)
        return EncodedSide(tokens, offsets)

    def _map(self, path: Path, dtype: str, count: int) -> npt.NDArray[np.int64]:
        size = path.stat().st_size
        found, rest = divmod(size, np.dtype(dtype).itemsize)
        if found != count or rest:
            raise ValueError(
                f"{path} has {found:,} numbers where {count:,} were expected; prepare the corpus "
                "again"
            )
        values = np.memmap(path, dtype=dtype, mode="r")
        # A plain array over the same pages: slices of it cost less than slices of a memmap.
        return np.asarray(values)


def check_ids(path: Path, tokens: Integers, offsets: Integers, tokenizer: Tokenizer) -> None:
    """Raise ValueError, with file and position, for an id that no token in a sentence can have.

    An id beyond the vocabulary would stop training with an index error, or read past the end of the
    embeddings; a special token within a sentence would be taken for padding or an end.
    """
    least, vocabulary = len(SPECIAL_TOKENS), tokenizer.size
    for start in range(0, len(tokens), CHECKED_AT_ONCE):
        part = tokens[start : start + CHECKED_AT_ONCE]
        if part.min() >= least and part.max() < vocabulary:
            continue
        wrong = (part < least) | (part >= vocabulary)
        if tokenizer.has_unknown:
            wrong &= part != UNKNOWN
        if not wrong.any():
            continue
        position = start + int(wrong.argmax())
        sentence = int(np.searchsorted(offsets, position, side="right"))
        raise ValueError(
            f"{path} is damaged: number {position + 1:,}, in sentence {sentence:,}, is the token "
            f"id {int(tokens[position]):,}; ids of the tokenizer's words are {least} to "
            f"{vocabulary - 1:,}; prepare the corpus again"
        )

"""Text to token ids and back. Our own tokenizer is a BPE on the bytes of words and punctuation.

Every text can be encoded, and decodes to itself, in Unicode's composed form (NFC) with single
spaces between words. No token holds both letters and punctuation, or parts of two words. Text that
looks like a special token is text. `imported_tokenizer` reads tokenizers from other tools, which
may normalise more and know fewer characters.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as BytePairTokenizer

from relakit.data.json_file import parse_json
from relakit.data.prepared_format import PrepareSettings, check_vocab_size
from relakit.data.token_spans import (
    BYTE_NAME,
    SPACE_MARK,
    bytes_of_letters,
    bytes_of_pieces,
    decoded_spans,
)
from relakit.files.reading import open_file
from relakit.files.writing import write_whole

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
SPECIAL_TOKENS: Final = ("<pad>", "<unk>", "<s>", "</s>")
"""In order of id. With bytes nothing is unknown; that id is for tokenizers from other tools."""
UNKNOWN_TEXT: Final = "\u2047"
"""What the unknown token is decoded to."""

LONGEST_TOKEN: Final = 64
"""Most bytes in a token; longer recurring strings (rows of dots, addresses) are not worth one."""

# Includes the four characters that str.split() takes for spaces and Unicode does not, so that
# encoding and decoding agree on what a space is.
SPACES: Final = r"[\s\x1c-\x1f]+"
# A word; or a punctuation mark or symbol, alone or repeated; each with the space before it.
_PIECES: Final = (
    r" ?[\p{L}\p{N}][\p{L}\p{M}\p{N}]*"
    r"| ?([^\s\p{L}\p{M}\p{N}])\1*\p{M}*"
    r"| ?\p{M}+"
    r"| "
)
_PROBE: Final = "Ein «Test», isn't it? 3½ ☃"
_PLAIN_PROBE: Final = "this is a test, isn't it?"


@dataclass(frozen=True)
class Encoded:
    """The tokens of a text, and where in it they are."""

    ids: list[int]
    spans: list[tuple[int, int]]
    """The first character and the one after the last, in the text as it was given, without the
    space before a word; never empty. Tokens that share a multi-byte character all span it, and a
    token that is only a space has the span of the token after it."""


class Tokenizer:
    """Text to token ids and back. Made by `learn_tokenizer` or `Tokenizer.load`."""

    def __init__(self, tokenizer: BytePairTokenizer) -> None:
        """Wrap a tokenizer of the `tokenizers` library.

        Raises:
            ValueError: it is not one that `learn_tokenizer` or `import_tokenizer` made.
        """
        self._is_bytes: Final = isinstance(tokenizer.decoder, decoders.ByteLevel)
        """Whether tokens are spelled in bytes; otherwise in characters, as in SentencePiece"""
        _check(tokenizer, is_bytes=self._is_bytes)
        self._tokenizer = tokenizer
        self.size: Final[int] = tokenizer.get_vocab_size()
        """Number of tokens, including the special ones."""
        vocabulary = tokenizer.get_vocab()
        self.longest_token: Final[int] = max(
            len(token) if self._is_bytes else len(token.encode()) for token in vocabulary
        )
        """The longest token has at most this many bytes."""
        self.has_unknown: Final[bool] = not self._is_bytes and (
            sum(map(bool, map(BYTE_NAME.fullmatch, vocabulary))) < 256
        )
        """Whether some characters are encoded as the unknown token."""

    @property
    def source(self) -> "Tokenizer":
        """The tokenizer for the source: this one, as for the target. See `TokenizerPair`."""
        return self

    @property
    def target(self) -> "Tokenizer":
        return self

    @property
    def sizes(self) -> tuple[int, int | None]:
        """Size of the vocabulary; None for the source, which has none of its own."""
        return self.size, None

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read a saved tokenizer.

        Raises:
            ValueError: the file is damaged, or is some other kind of tokenizer.
        """
        with open_file(path) as file:
            content = file.read()
        try:
            tokenizer = parse_tokenizer(content.decode("utf-8"))
        except UnicodeDecodeError:
            raise broken_tokenizer(path, "it is not UTF-8") from None
        except ValueError as error:
            raise broken_tokenizer(path, str(error)) from None
        try:
            return cls(tokenizer)
        except ValueError as error:
            raise ValueError(
                f"{path} is not a tokenizer of relakit: {error}; put back the file that was there"
            ) from None

    def save(self, path: Path) -> None:
        """Write the tokenizer as JSON, in the format of the `tokenizers` library."""
        write_whole(path, self.to_json().encode())

    def to_json(self) -> str:
        return self._tokenizer.to_str(pretty=True)

    def normalize(self, text: str) -> str:
        """The text as decoding gives it back: composed characters, single spaces."""
        spaced: str = self._tokenizer.normalizer.normalize_str(text)
        return spaced.removeprefix(" ")

    def surely_exceeds(self, text: str, tokens: int) -> bool:
        """Whether a text certainly has more than ``tokens`` tokens, without encoding it."""
        longest = tokens * self.longest_token
        return len(text) > longest and len(self.normalize(text).encode()) > longest

    def beginning(self, text: str, tokens: int) -> str:
        """The whole text, or enough of a very long one to certainly have more than ``tokens``.

        Its first ``tokens`` tokens are those of the whole text.
        """
        if not self.surely_exceeds(text, tokens):
            return text
        # Twice as much as is needed, so that the cut is far from the tokens that count.
        return self.normalize(text)[: 2 * tokens * self.longest_token]

    def encode(self, text: str) -> Encoded:
        """The token ids and their places in the text, without BEGIN and END."""
        encoding = self._tokenizer.encode(text)
        return Encoded(ids=encoding.ids, spans=_spans(text, encoding.offsets))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of many texts, faster than one by one."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]

    def starting_with(self, text: str, *, longer: bool = False) -> list[int]:
        """The tokens whose text starts with ``text``, including spaces; or only the longer ones."""
        mapped = _as_bytes(text) if self._is_bytes else text.replace(" ", SPACE_MARK)
        names, ids = self._by_name
        first, last = (bisect_left(names, end) for end in (mapped, mapped + chr(0x10FFFF)))
        is_token = longer and first < last and names[first] == mapped
        return ids[first + is_token : last]

    def spelled(self, ids: Iterable[int]) -> list[str]:
        """Each token as the vocabulary spells it."""
        return [str(self._tokenizer.id_to_token(id)) for id in ids]

    def spelled_parts(self, ids: Sequence[int]) -> list[str]:
        """The parts of a text that are split into tokens separately, spelled like tokens."""
        text: str = self._tokenizer.decoder.decode(self.spelled(ids))
        return [part for part, _ in self._tokenizer.pre_tokenizer.pre_tokenize_str(text)]

    @property
    def tokens(self) -> list[str]:
        """All tokens by id, as the vocabulary spells them: a space is an "\u0120" or "\u2581"."""
        vocabulary = self._tokenizer.get_vocab()
        return sorted(vocabulary, key=vocabulary.__getitem__)

    @cached_property
    def _by_name(self) -> tuple[list[str], list[int]]:
        """The ordinary tokens in the order of their spelling, and their ids."""
        ordinary = list(enumerate(self.tokens))[len(SPECIAL_TOKENS) :]
        if not self._is_bytes:
            ordinary = [token for token in ordinary if not BYTE_NAME.fullmatch(token[1])]
        ordinary.sort(key=lambda token: token[1])
        return [name for _, name in ordinary], [id for id, _ in ordinary]

    def is_text(self, id: int) -> bool:
        """Whether this token may be part of a sentence; special tokens go around sentences."""
        return id >= len(SPECIAL_TOKENS) or (self.has_unknown and id == UNKNOWN)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the tokens, on one line, without special tokens except the unknown one."""
        return self.decode_batch([ids])[0]

    def decode_batch(self, sentences: Iterable[Iterable[int]]) -> list[str]:
        ordinary = [[int(id) for id in ids if self.is_text(id)] for ids in sentences]
        texts = self._tokenizer.decode_batch(ordinary, skip_special_tokens=False)
        # A model may write any bytes, even line ends; a translation must stay on one line.
        return [" ".join(text.split()) for text in texts]

    def decoded(self, ids: Sequence[int]) -> Encoded:
        """These tokens, which need not come from `encode`, and where they are in `decode`'s text.

        Tokens that are left out of the text, or are spaces at its end, have empty spans.
        """
        names = [
            f" {UNKNOWN_TEXT} " if id == UNKNOWN else str(self._tokenizer.id_to_token(id))
            for id in ids
            if self.is_text(id)
        ]
        parts = bytes_of_letters(names) if self._is_bytes else bytes_of_pieces(names)
        spans = iter(decoded_spans(parts)[1])
        return Encoded(list(ids), [next(spans) if self.is_text(id) else (0, 0) for id in ids])


def broken_tokenizer(path: Path, problem: str) -> ValueError:
    """The error for a file that is not what its name says."""
    return ValueError(
        f"{path} is not a tokenizer, or is truncated: {problem}; copy or make it again"
    )


def parse_tokenizer(content: str) -> BytePairTokenizer:
    """Parse the JSON of a tokenizer of the `tokenizers` library; ValueError if it is not one."""
    try:
        return BytePairTokenizer.from_str(content)
    except BaseException as error:
        # The library raises nothing more specific, and for input that it does not expect, not even
        # an Exception.
        if isinstance(error, (KeyboardInterrupt, SystemExit, MemoryError)):
            raise
        parse_json(content)  # raises an error in our own words if it is not JSON
        raise ValueError("it has other keys or values than a tokenizer has") from None


def _as_bytes(text: str) -> str:
    """The text as a byte vocabulary spells it."""
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(mapped for mapped, _ in by_bytes.pre_tokenize_str(text))


def learn_tokenizer(
    lines: Iterable[str], vocab_size: int, *, min_frequency: int = PrepareSettings.min_frequency
) -> Tokenizer:
    """Learn a BPE from text; the same text gives the same BPE.

    Memory grows with the number of different words, not of lines. The BPE has fewer than
    ``vocab_size`` tokens if no more pairs of tokens occur ``min_frequency`` times.

    Raises:
        ValueError: the vocabulary is too small for all bytes, or there is no text.
    """
    check_vocab_size(vocab_size)
    if min_frequency < 1:
        raise ValueError(f"min_frequency must be at least 1, got {min_frequency}")
    tokenizer = BytePairTokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),
            normalizers.Replace(Regex(SPACES), " "),
            normalizers.Strip(),
            # A word is the same token at the start of a sentence as within it.
            normalizers.Prepend(" "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=LONGEST_TOKEN,
        show_progress=False,
    )
    seen = _WithText(lines)
    tokenizer.train_from_iterator(seen, trainer)
    if not seen.text:
        raise ValueError("there is no text to learn a tokenizer from")
    return Tokenizer(_without_added_tokens(tokenizer))


class _WithText:
    """Passes lines on, and remembers whether any had text."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.text = False

    def __iter__(self) -> "_WithText":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.text = self.text or bool(line.strip())
        return line


def _without_added_tokens(tokenizer: BytePairTokenizer) -> BytePairTokenizer:
    """Keep the special tokens in the vocabulary, but stop looking for them in texts."""
    document = json.loads(tokenizer.to_str())
    document["added_tokens"] = []
    return BytePairTokenizer.from_str(json.dumps(document))


def _check(tokenizer: BytePairTokenizer, *, is_bytes: bool) -> None:
    vocabulary = tokenizer.get_vocab()
    for number, token in enumerate(SPECIAL_TOKENS):
        if vocabulary.get(token) != number:
            raise ValueError(f"token {number} must be {token!r}")
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError("its token ids have gaps")
    if tokenizer.get_added_tokens_decoder():
        raise ValueError("it looks for added tokens in texts")
    if is_bytes and not vocabulary.keys() >= set(pre_tokenizers.ByteLevel.alphabet()):
        raise ValueError("its vocabulary lacks some bytes")
    if tokenizer.normalizer is None or tokenizer.pre_tokenizer is None:
        raise ValueError("it does not say how spaces are treated")
    probe = f" {_PROBE if is_bytes else _known_part(_PLAIN_PROBE, tokenizer)}"
    back = tokenizer.decode(tokenizer.encode(probe).ids, skip_special_tokens=False)
    if back != probe:
        raise ValueError(
            f"text does not come back from its tokens as it was: {probe!r} becomes {back!r}"
        )


def _known_part(text: str, tokenizer: BytePairTokenizer) -> str:
    """A text normalised by the tokenizer, which may drop case, without the characters it lacks."""
    vocabulary = tokenizer.get_vocab()
    normal = tokenizer.normalizer.normalize_str(text)
    return " ".join("".join(c for c in normal if c in vocabulary or c == " ").split())


def _spans(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The library's offsets, without spaces, and with the marks that were composed into letters.

    For a letter and its combining marks, the library may give only the letter, so a token extends
    to the start of the next one.
    """
    spans: list[tuple[int, int]] = []
    later_start = next_start = len(text)
    for start, end in reversed(offsets):
        if start != next_start:
            later_start, next_start = next_start, start
        piece = text[start : max(end, later_start)]
        first = start + len(piece) - len(piece.lstrip())
        last = start + len(piece.rstrip())
        spans.append((first, last) if first < last else spans[-1])
    return spans[::-1]

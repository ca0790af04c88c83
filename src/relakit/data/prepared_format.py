"""The files of a prepared corpus, and `corpus.json`, which describes them.

All numbers are little-endian. `SPLIT.source.tokens` holds the token ids of all source sentences,
one after the other, `SPLIT.source.offsets` where each sentence starts (and, at the end, the number
of tokens), `SPLIT.lines` the line that each pair was on.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from relakit.data.json_file import read_json
from relakit.files.output_paths import PREPARED
from relakit.known_names import known_name
from relakit.limits import MAX_VOCABULARY

FORMAT: Final = "relakit corpus"
VERSION: Final = 1
DOCUMENT_NAME: Final = PREPARED.marker
Side: TypeAlias = Literal["source", "target"]
SIDES: Final[tuple[Side, ...]] = get_args(Side)
OFFSET_TYPE: Final = "<i8"
TokenType: TypeAlias = Literal["<u2", "<u4"]
"""NumPy's names for the types that token ids are stored in."""
LongSentences: TypeAlias = Literal["drop", "truncate"]
"""What happens to pairs with too many tokens on a side."""
VocabularyKind: TypeAlias = Literal["joint", "separate"]
"""One vocabulary for both languages, or one for each."""

HELD_OUT_TOKENS: Final = 1024
"""Sentences up to this length stay in validation and test sets, whatever the limit for train."""

SMALLEST_VOCABULARY: Final = 4 + 256
"""The special tokens and all bytes."""


def check_vocab_size(size: int) -> None:
    """Raise ValueError for a vocabulary that cannot be learned."""
    if size < SMALLEST_VOCABULARY:
        raise ValueError(
            f"vocab_size must be at least {SMALLEST_VOCABULARY} (4 special tokens and 256 bytes), "
            f"got {size}"
        )
    if size > MAX_VOCABULARY:
        raise ValueError(f"vocab_size must be at most {MAX_VOCABULARY:,}, got {size:,}")


@dataclass(frozen=True, kw_only=True)
class PrepareSettings:
    """How text becomes token ids. Every default of `relakit prepare` is here."""

    vocab_size: int = 8000
    """Size of the vocabulary, or of each if there are two, when tokenizers are learned."""
    vocabulary: VocabularyKind = "joint"
    """Whether both languages share a tokenizer, or each has its own."""
    min_frequency: int = 2
    """How often two tokens must follow each other to become one."""
    sample_lines: int = 1_000_000
    """The tokenizer learns from at most this many lines, spread evenly over both sides of train."""
    max_tokens: int = 256
    """Most tokens in a training sentence; validation and test sets keep longer ones, too."""
    long_sentences: LongSentences = "drop"
    """Whether pairs with more tokens on either side are dropped, or cut off on that side."""
    source_language: str | None = None
    target_language: str | None = None

    def __post_init__(self) -> None:
        check_vocab_size(self.vocab_size)
        for name in ("min_frequency", "max_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        known_name("long_sentences", self.long_sentences, get_args(LongSentences))
        known_name("vocabulary", self.vocabulary, get_args(VocabularyKind))
        if "" in (self.source_language, self.target_language):
            raise ValueError("a language needs a name, such as en; got an empty one")
        if self.sample_lines < 2:
            raise ValueError(f"sample_lines must be at least 2, got {self.sample_lines}")

    def longest_sentence(self, split: str) -> int:
        """Most tokens in a sentence of a split; within reason, only training data is limited.

        Without its long sentences, a test set would be a different one, and so would its scores.
        """
        return self.max_tokens if split == "train" else max(self.max_tokens, HELD_OUT_TOKENS)


@dataclass(frozen=True, kw_only=True)
class SplitCounts:
    """How many pairs of a split were read, kept and dropped."""

    read: int
    kept: int
    empty: int
    """Dropped because a side had no text."""
    overlong: int
    """Dropped or truncated because a side had too many tokens."""
    source_tokens: int
    """In the pairs kept, not counting BEGIN and END."""
    target_tokens: int


@dataclass(frozen=True, kw_only=True)
class CorpusDocument:
    """What `corpus.json` says."""

    settings: PrepareSettings
    token_type: TokenType
    tokenizer_sha256: str
    splits: dict[str, SplitCounts]
    inputs: dict[str, list[str]]
    """The files that each split was read from."""
    files: dict[str, int]
    """The size of every file in bytes."""

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=1) + "\n"


def tokens_name(split: str, side: Side) -> str:
    return f"{split}.{side}.tokens"


def offsets_name(split: str, side: Side) -> str:
    return f"{split}.{side}.offsets"


def lines_name(split: str) -> str:
    return f"{split}.lines"


def token_type(vocabulary: int) -> TokenType:
    """The smallest type that holds the ids of this many tokens."""
    return "<u2" if vocabulary <= 1 << 16 else "<u4"


def read_document(folder: Path) -> CorpusDocument:
    """Read `corpus.json`, and check the sizes of all files against it.

    Raises:
        ValueError: the folder is not a prepared corpus, or parts are missing or truncated.
    """
    path = folder / DOCUMENT_NAME
    if not path.is_file():
        raise ValueError(
            f"{folder} is not a prepared corpus: it has no {DOCUMENT_NAME}; make one with `relakit "
            "prepare`"
        )
    values = read_json(path)
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ValueError(f"{path} does not describe a prepared corpus")
    if values.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {values.get('version')}, this relakit reads version {VERSION}; "
            "prepare the corpus again"
        )
    try:
        document = _parse(values)
    except KeyError as error:
        raise _damaged(path, f"it has no {error}") from None
    except (AttributeError, TypeError):
        raise _damaged(path, "it has other keys or values than relakit writes") from None
    except ValueError as error:
        raise _damaged(path, str(error)) from None
    for name, size in document.files.items():
        _check_size(folder / name, size)
    return document


def _damaged(path: Path, problem: str) -> ValueError:
    return ValueError(f"{path} is damaged: {problem}; prepare the corpus again")


def _parse(values: Mapping[str, Any]) -> CorpusDocument:
    types = get_args(TokenType)
    if values["token_type"] not in types:
        raise ValueError(f"token_type {values['token_type']!r} is none of {', '.join(types)}")
    splits = {name: SplitCounts(**counts) for name, counts in values["splits"].items()}
    for split, counts in splits.items():
        for name, count in asdict(counts).items():
            if type(count) is not int or count < (name == "kept"):
                raise ValueError(f"splits.{split}.{name} cannot be {count!r}")
    files = {str(name): int(size) for name, size in values["files"].items()}
    for split in splits:
        for name in _names_of(split):
            if name not in files:
                raise ValueError(f"it has no {name!r}")
    return CorpusDocument(
        settings=PrepareSettings(**values["settings"]),
        token_type=values["token_type"],
        tokenizer_sha256=str(values["tokenizer_sha256"]),
        splits=splits,
        inputs={name: list(paths) for name, paths in values["inputs"].items()},
        files=files,
    )


def _names_of(split: str) -> Iterator[str]:
    """The files of a split."""
    for side in SIDES:
        yield tokens_name(split, side)
        yield offsets_name(split, side)
    yield lines_name(split)


def _check_size(path: Path, expected: int) -> None:
    if not path.is_file():
        raise ValueError(f"{path} is missing; prepare the corpus again")
    size = path.stat().st_size
    if size != expected:
        raise ValueError(
            f"{path} has {size:,} bytes, {DOCUMENT_NAME} says {expected:,}: it is truncated or "
            "from another corpus; prepare the corpus again"
        )

"""The tokenizers of a corpus or a model: one for both languages, or one for each.

A folder has ``tokenizer.json``, for both languages or for the target, and in the second case also
``source_tokenizer.json``. Functions that take `Tokenizers` use ``.source`` and ``.target``, which
for a joint tokenizer are the tokenizer itself.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from relakit.data.prepared_format import VocabularyKind
from relakit.data.tokenizer import Tokenizer
from relakit.files.reading import file_digest

TOKENIZER_FILE: Final = "tokenizer.json"
SOURCE_TOKENIZER_FILE: Final = "source_tokenizer.json"


@dataclass(frozen=True)
class TokenizerPair:
    """A tokenizer for each language; the same id is a different token in each."""

    source: Tokenizer
    target: Tokenizer

    @property
    def sizes(self) -> tuple[int, int | None]:
        """Sizes of the target's vocabulary and of the source's."""
        return self.target.size, self.source.size


Tokenizers: TypeAlias = Tokenizer | TokenizerPair


def learn_tokenizers(kind: VocabularyKind, learn: Callable[[slice], Tokenizer]) -> Tokenizers:
    """Learn one for both languages, or one for each; ``learn`` is given the sides to learn from."""
    if kind == "separate":
        return TokenizerPair(source=learn(slice(0, 1)), target=learn(slice(1, 2)))
    return learn(slice(0, 2))


def load_tokenizers(folder: Path) -> Tokenizers:
    """Load the tokenizers in a folder; ValueError or OSError naming the file if one is broken."""
    target = Tokenizer.load(folder / TOKENIZER_FILE)
    if not (folder / SOURCE_TOKENIZER_FILE).is_file():
        return target
    return TokenizerPair(Tokenizer.load(folder / SOURCE_TOKENIZER_FILE), target)


def save_tokenizers(folder: Path, tokenizers: Tokenizers) -> None:
    """Write them where `load_tokenizers` finds them."""
    tokenizers.target.save(folder / TOKENIZER_FILE)
    if isinstance(tokenizers, TokenizerPair):
        tokenizers.source.save(folder / SOURCE_TOKENIZER_FILE)


def tokenizer_files(folder: Path) -> list[Path]:
    """The files of the tokenizers in a folder."""
    names = (TOKENIZER_FILE, SOURCE_TOKENIZER_FILE)
    return [folder / name for name in names if (folder / name).is_file()]


def tokenizers_digest(folder: Path) -> str:
    """A digest that tells whether two folders have the same tokenizers; SHA-256 for one file."""
    digests = [file_digest(path) for path in tokenizer_files(folder)]
    return (
        digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    )


def tokenizers_fingerprint(tokenizers: Tokenizers) -> str:
    """A digest that is equal for tokenizers that give the same ids for a text, wherever stored."""
    sides = dict.fromkeys((tokenizers.source.to_json(), tokenizers.target.to_json()))
    return hashlib.sha256("\n".join(sides).encode()).hexdigest()


def are_same(one: Tokenizers, other: Tokenizers) -> bool:
    """Whether they give the same ids for the same text."""
    return (
        type(one) is type(other)
        and one.target.to_json() == other.target.to_json()
        and one.source.to_json() == other.source.to_json()
    )


def exchanged(tokenizers: Tokenizers) -> Tokenizers:
    """The tokenizers for the opposite direction."""
    if isinstance(tokenizers, Tokenizer):
        return tokenizers
    return TokenizerPair(source=tokenizers.target, target=tokenizers.source)

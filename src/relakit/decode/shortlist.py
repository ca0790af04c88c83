"""A lexical shortlist: which target tokens may be in the translation of a sentence.

They are the tokens that were linked with one of its tokens in the text that the list was made from,
and the most frequent tokens of all. Which ones depends on the sentence alone, so its translation
does too, whatever else is in its batch. No torch here.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from relakit.data.setting_errors import explain_setting
from relakit.data.tokenizer import BEGIN, END, PAD, Tokenizer
from relakit.data.tokenizer_pair import Tokenizers, tokenizers_fingerprint
from relakit.files.writing import write_whole
from relakit.model.description import SHORTLIST_FILE

AGAIN: Final = "make it again with relakit shortlist, or delete it"
_ABOUT: Final = "about"
NEVER_LISTED: Final = (PAD, BEGIN, END)
"""Tokens that no translation has; END is in every list, separately from its tokens."""

TokenIds: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class ShortlistAbout(BaseModel):
    """Where a shortlist comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    tokenizers: str
    """`tokenizers_fingerprint` of the tokenizers that it was made for"""
    is_joint: bool
    """Whether source and target have the same tokens, so that a source token may be copied"""
    best: int = Field(ge=1)
    """Most target tokens that a source token has"""
    files: tuple[str, ...] = ()
    pairs: int = 0
    relakit: str = ""
    """The version that made it"""


@dataclass(frozen=True)
class Shortlist:
    """The target tokens of every source token."""

    starts: TokenIds
    """Where the target tokens of each source token begin, and where the last ones end"""
    tokens: TokenIds
    """The target tokens of the first source token, then those of the second, and so on"""
    frequent: TokenIds
    """The target tokens that every sentence has"""
    about: ShortlistAbout
    name: str = "the shortlist"
    """What errors call it"""

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem is not None:
            raise ValueError(f"{self.name}: {problem}; {AGAIN}")

    def _problem(self) -> str | None:
        starts = self.starts
        if len(starts) < 2 or starts[0] != 0 or starts[-1] != len(self.tokens):
            return f"its {len(starts):,} places do not fit its {len(self.tokens):,} tokens"
        if (np.diff(starts) < 0).any():
            return "its places are not in ascending order"
        for tokens in (self.tokens, self.frequent):
            if len(tokens) and (tokens.min() < 0 or np.isin(tokens, NEVER_LISTED).any()):
                return "it has tokens that no translation has"
        return None

    def tokens_for(self, source: Sequence[int]) -> TokenIds:
        """The tokens that a translation of ``source`` may have: END first, the others ascending."""
        parts = [self.frequent]
        for token in set(source):
            parts.append(self.tokens[self.starts[token] : self.starts[token + 1]])
        if self.about.is_joint:
            parts.append(np.array([t for t in source if t not in NEVER_LISTED], dtype=np.int64))
        return np.concatenate([np.array([END]), np.unique(np.concatenate(parts))])

    def check_tokenizers(self, tokenizers: Tokenizers, model: str) -> None:
        """Raise ValueError unless the shortlist was made for these tokenizers of a model."""
        found = tokenizers_fingerprint(tokenizers)
        if found != self.about.tokenizers:
            raise ValueError(
                f"{self.name} was made for another tokenizer, {self.about.tokenizers[:12]}..., "
                f"than {model} has, {found[:12]}...; {AGAIN}"
            )
        sources = len(self.starts) - 1
        largest = int(np.concatenate([self.tokens, self.frequent, [0]]).max())
        if sources != tokenizers.source.size or largest >= tokenizers.target.size:
            raise ValueError(
                f"{self.name} has {sources:,} source tokens and target tokens up to {largest:,}, "
                f"but {model} has {tokenizers.source.size:,} and "
                f"{tokenizers.target.size:,}; {AGAIN}"
            )


def about_tokenizers(tokenizers: Tokenizers) -> dict[str, Any]:
    """The fields of `ShortlistAbout` that tell which tokenizers a shortlist is for."""
    return {
        "tokenizers": tokenizers_fingerprint(tokenizers),
        "is_joint": isinstance(tokenizers, Tokenizer),
    }


def write_shortlist(folder: Path, shortlist: Shortlist) -> Path:
    """Put a shortlist into the directory of its model; returns the file."""
    path = folder / SHORTLIST_FILE
    tensors: dict[str, np.ndarray[Any, Any]] = {
        "starts": shortlist.starts,
        "tokens": shortlist.tokens.astype(np.int32),
        "frequent": shortlist.frequent.astype(np.int32),
    }
    write_whole(path, save(tensors, metadata={_ABOUT: shortlist.about.model_dump_json()}))
    return path


def read_shortlist(folder: Path) -> Shortlist:
    """The shortlist in a model directory.

    Raises:
        OSError: there is no shortlist.
        ValueError: the shortlist is damaged.
    """
    path = folder / SHORTLIST_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no {path}; make it from the training text: relakit shortlist {folder} "
            "--source FILE --target FILE"
        )
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {})[_ABOUT])
            tensors = {
                name: file.get_tensor(name).astype(np.int64)
                for name in ("starts", "tokens", "frequent")
            }
            return Shortlist(**tensors, about=ShortlistAbout.model_validate(about), name=str(path))
    except ValidationError as error:
        raise ValueError(f"{path}: {explain_setting(error.errors()[0])}; {AGAIN}") from None
    except (SafetensorError, KeyError, json.JSONDecodeError):
        raise ValueError(f"{path} is damaged, or no shortlist; {AGAIN}") from None

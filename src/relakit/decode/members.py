"""Models read from their directories, and whether they can translate together."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from relakit.data.tokenizer import Tokenizer
from relakit.data.tokenizer_pair import Tokenizers
from relakit.model import ModelAbout, Transformer
from relakit.model.description import read_description
from relakit.model.directory import build_model


@dataclass(frozen=True)
class Member:
    """A model with what belongs to it."""

    folder: Path
    model: Transformer
    tokenizers: Tokenizers
    about: ModelAbout


def load_member(folder: Path, device: torch.device) -> Member:
    """Read a model directory; its tokenizer has as many tokens as its model has embeddings."""
    described = read_description(folder)
    tokenizers = described.tokenizers()
    model, about = build_model(described, device=device)
    return Member(folder, model, tokenizers, about)


def check_same_kind(members: Sequence[Member]) -> None:
    """Raise ValueError, with the first difference, unless they translate the same tokens."""
    first, *others = members
    for other in others:
        problem = (
            _other_languages(first.about, other.about)
            or _other_tokens(first.tokenizers.target, other.tokenizers.target)
            or _other_tokens(first.tokenizers.source, other.tokenizers.source)
        )
        if problem is not None:
            raise ValueError(
                f"{first.folder} and {other.folder} cannot translate together: {problem}; an "
                "ensemble needs models that were trained with the same tokenizer"
            )


def _other_languages(first: ModelAbout, other: ModelAbout) -> str | None:
    for side in ("source", "target"):
        one, two = (getattr(about, f"{side}_language") for about in (first, other))
        if one is not None and two is not None and one != two:
            return f"their {side} languages are {one!r} and {two!r}"
    return None


def _other_tokens(first: Tokenizer, other: Tokenizer) -> str | None:
    for id, (one, two) in enumerate(zip(first.tokens, other.tokens, strict=False)):
        if one != two:
            return f"token {id:,} is {one!r} and {two!r}"
    if first.size != other.size:
        return f"their vocabularies have {first.size:,} and {other.size:,} tokens"
    if first.to_json() != other.to_json():
        return "their tokenizers have the same tokens, but split text by other rules"
    return None

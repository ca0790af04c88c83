"""Whether several models can translate together, checked before any of them is built."""

from collections.abc import Sequence

from relakit.data.tokenizer import Tokenizer
from relakit.model.description import ModelAbout, ModelDescription


def check_same_kind(models: Sequence[ModelDescription]) -> None:
    """Raise ValueError, with the first difference, unless all models translate the same tokens."""
    first, *others = models
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

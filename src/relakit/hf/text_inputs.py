"""Texts in the form that a model of transformers reads, with the labels of tokens and words."""

from dataclasses import dataclass
from typing import Any, Final

from torch import Tensor, nn
from transformers import PreTrainedModel

from relakit.analysis.text_results import TextTokens
from relakit.analysis.word_map import NO_WORD, Span, split_words, words_of_tokens

_BLANKS: Final = {"\n": "↵", "\t": "⇥", " ": "␣"}
"""What to show for tokens that would otherwise be invisible"""


@dataclass(frozen=True)
class TextInput:
    """A text, and the arguments to call the model with."""

    read: TextTokens
    inputs: dict[str, Tensor]


def encode_text(model: PreTrainedModel, tokenizer: Any, text: str, place: str) -> TextInput:
    """Split a text into tokens and words.

    Args:
        model: the model that will read the text.
        tokenizer: the model's tokenizer.
        text: one text.
        place: what to call the text in errors, such as "text 3".

    Raises:
        ValueError: the text has no tokens, more tokens than the model has positions, or tokens that
            the model does not know.
    """
    has_spans = bool(getattr(tokenizer, "is_fast", False))
    encoded = dict(
        tokenizer(
            text,
            return_tensors="pt",
            return_special_tokens_mask=has_spans,
            return_offsets_mapping=has_spans,
        )
    )
    is_special = encoded.pop("special_tokens_mask", None)
    spans = encoded.pop("offset_mapping", None)
    ids = encoded["input_ids"]
    _check_ids(model, ids, place)
    numbers = ids[0].tolist()
    names = tokenizer.convert_ids_to_tokens(numbers)
    if spans is None or is_special is None:
        labels = [tokenizer.convert_tokens_to_string([name]).strip() or name for name in names]
        read = TextTokens(text, tuple(labels))
    else:
        unknown = getattr(tokenizer, "unk_token_id", None)
        is_named = [
            bool(special) or number == unknown
            for special, number in zip(is_special[0].tolist(), numbers, strict=True)
        ]
        spans_of_tokens = [(start, end) for start, end in spans[0].tolist()]
        read = _tokens_and_words(text, names, spans_of_tokens, is_named)
    return TextInput(read, {name: tensor.to(model.device) for name, tensor in encoded.items()})


def position_limit(model: PreTrainedModel) -> int | None:
    """The most tokens that the model can read; None if it does not say."""
    limit = getattr(model.config, "max_position_embeddings", None)
    for name, module in model.named_modules():
        # As in RoBERTa, the first positions stand for padding.
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            padding = -1 if module.padding_idx is None else module.padding_idx
            return module.num_embeddings - padding - 1
    return limit if isinstance(limit, int) and limit > 0 else None


def _check_ids(model: PreTrainedModel, ids: Tensor, place: str) -> None:
    tokens = ids.size(1)
    if tokens == 0:
        raise ValueError(f"{place}: it has no tokens")
    limit = position_limit(model)
    if limit is not None and tokens > limit:
        raise TooLongError(
            f"{place}: it has {tokens:,} tokens, but the model has {limit:,} positions; split the "
            "text"
        )
    embeddings = model.get_input_embeddings()
    size = getattr(embeddings, "num_embeddings", None)
    largest = int(ids.max())
    if isinstance(size, int) and largest >= size:
        raise ValueError(
            f"{place}: it has the token number {largest:,}, but the model knows {size:,} tokens; "
            "the tokenizer is that of another model"
        )


class TooLongError(ValueError):
    """A text with more tokens than the model has positions."""


def _tokens_and_words(
    text: str, names: list[str], spans: list[Span], is_named: list[bool]
) -> TextTokens:
    """Tokens labelled with their part of the text, or else with the tokenizer's name, and words."""
    word_spans = split_words(text)
    numbers = words_of_tokens(spans, word_spans).tolist()
    words: list[str] = []
    places: dict[int, int] = {}
    labels, token_words = [], []
    for name, (start, end), named, number in zip(names, spans, is_named, numbers, strict=True):
        labels.append(name if named or start == end else _visible(text[start:end]))
        if number != NO_WORD and number in places:
            token_words.append(places[number])
        elif number == NO_WORD and start < end:
            token_words.append(NO_WORD)  # spaces
        else:
            if number != NO_WORD:
                places[number] = len(words)
            token_words.append(len(words))
            words.append(name if number == NO_WORD else text[slice(*word_spans[number])])
    return TextTokens(text, tuple(labels), tuple(words), tuple(token_words))


def _visible(label: str) -> str:
    return label.strip() or "".join(_BLANKS.get(character, "␣") for character in label)

"""What tokens and words are called, and texts that a model cannot read."""

from typing import Any

import pytest
from tiny_hf_models import ARCHITECTURES
from tiny_tokenizers import byte_tokenizer, word_piece_tokenizer, word_tokenizer

from relakit.analysis.word_map import NO_WORD
from relakit.hf.text_inputs import TooLongError, encode_text, position_limit


@pytest.fixture(scope="module")
def bert() -> Any:
    return ARCHITECTURES["bert"].build()


def test_special_and_unknown_tokens_have_their_names(bert: Any) -> None:
    read = encode_text(bert, word_piece_tokenizer(), "the dog sees cats.", "text 1").read
    assert read.labels == ("[CLS]", "the", "dog", "see", "s", "[UNK]", ".", "[SEP]")
    assert read.words == ("[CLS]", "the", "dog", "sees", "cats", ".", "[SEP]")
    assert read.token_words == (0, 1, 2, 3, 3, 4, 5, 6)


def test_spaces_are_visible_and_in_no_word() -> None:
    model = ARCHITECTURES["gpt2"].build()
    model.resize_token_embeddings(300)
    read = encode_text(model, byte_tokenizer(), "ab c\nd", "text 1").read
    assert read.labels == ("a", "b", "␣", "c", "↵", "d")
    assert read.words == ("ab", "c", "d")
    assert read.token_words == (0, 0, NO_WORD, 1, NO_WORD, 2)


def test_a_character_of_several_tokens(bert: Any) -> None:
    bert.resize_token_embeddings(300)
    read = encode_text(bert, byte_tokenizer(), "a 😀", "text 1").read
    assert read.labels == ("a", "␣", "😀", "😀", "😀", "😀")
    assert read.words == ("a", "😀")


class SlowTokenizer:
    """One that does not tell where its tokens are in the text."""

    def __init__(self) -> None:
        self._fast = word_tokenizer()

    def __call__(self, text: str, **options: Any) -> Any:
        assert not options.pop("return_offsets_mapping")
        return self._fast(text, **options)

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [f"▁{token}" for token in self._fast.convert_ids_to_tokens(ids)]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return "".join(tokens).replace("▁", " ")


def test_without_spans_there_are_no_words(bert: Any) -> None:
    read = encode_text(bert, SlowTokenizer(), "w5 w6", "text 1").read
    assert read.labels == ("w5", "w6")
    assert read.words is None


@pytest.mark.parametrize(("name", "limit"), [("bert", 64), ("roberta", 63), ("gpt2", 64)])
def test_positions(name: str, limit: int) -> None:
    model = ARCHITECTURES[name].build()
    assert position_limit(model) == limit
    whole = encode_text(model, word_tokenizer(), "w3 " * limit, "text 1")
    model(**whole.inputs)  # the last one that works
    with pytest.raises(TooLongError, match=f"it has {limit + 1} tokens, but the model has {limit}"):
        encode_text(model, word_tokenizer(), "w3 " * (limit + 1), "text 1")


def test_the_tokenizer_of_another_model() -> None:
    model = ARCHITECTURES["gpt2"].build()
    with pytest.raises(ValueError, match=r"text 7: it has the token number .* of another model"):
        encode_text(model, byte_tokenizer(), "😀", "text 7")

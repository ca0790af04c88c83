"""Tokenizers with small vocabularies, of the kinds that models of transformers have."""

from typing import Any

import pytest
from tiny_hf_models import VOCABULARY

pytest.importorskip("tokenizers")

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast


def word_tokenizer() -> Any:
    """``w3 w4``: a token for each word, no special ones."""
    words = Tokenizer(models.WordLevel({f"w{n}": n for n in range(VOCABULARY)}, unk_token="w3"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, model_input_names=["input_ids", "attention_mask"]
    )


def word_piece_tokenizer() -> Any:
    """As BERT's: ``[CLS]``, pieces, ``[SEP]``."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "dog", "see", "##s", "."]
    tokenizer = Tokenizer(
        models.WordPiece({piece: n for n, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def byte_tokenizer() -> Any:
    """As GPT-2's, without merges: each byte is a token, with spaces."""
    letters = {letter: n for n, letter in enumerate("abcdeĠĊð")}
    for letter in sorted(pre_tokenizers.ByteLevel.alphabet()):
        letters.setdefault(letter, len(letters))
    tokenizer = Tokenizer(models.BPE(vocab=letters, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_input_names=["input_ids", "attention_mask"]
    )

"""A tokenizer of few pieces, and small models with random weights."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import Tokenizer, learn_tokenizer
from relakit.model import ModelConfig, Transformer

ModelMaker = Callable[[str], Transformer]


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """So small that most words have several tokens."""
    pairs = list(generate_pairs(300))
    return learn_tokenizer([t for p in pairs for t in (p.source_text, p.target_text)], 400)


@pytest.fixture(scope="session")
def make_model(tokenizer: Tokenizer) -> ModelMaker:
    """Models with dropout in which no parameter has the value it starts training with."""

    def make(attention: str) -> Transformer:
        torch.manual_seed(0)
        config = ModelConfig(
            vocabulary=tokenizer.size,
            dim=24,
            heads=3,
            encoder_layers=1,
            decoder_layers=2,
            feed_forward=32,
            encoder_attention=attention,
            decoder_attention=attention,
            cross_attention=attention,
            dropout=0.5,
            attention_dropout=0.5,
        )
        model = Transformer(config).eval()
        for parameter in model.parameters():
            nn.init.normal_(parameter, mean=0.1 if parameter.dim() == 1 else 0.0, std=0.3)
        for layer in model.decoder.layers:
            # Pointed enough that the end of a sentence has the largest weight now and then.
            layer.cross_attention.query.weight.data *= 8
        return model

    return make

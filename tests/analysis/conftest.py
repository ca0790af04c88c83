"""A tokenizer of few pieces, and small models with random weights."""

from collections.abc import Callable

import pytest
import torch
from small_tokenizer import small_tokenizer
from torch import nn

from relakit.data.tokenizer import Tokenizer
from relakit.model import ModelConfig, Transformer

ModelMaker = Callable[[str], Transformer]


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return small_tokenizer()


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

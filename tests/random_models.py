"""Small models with random weights, and sentences for them."""

from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import nn

from relakit.data.tokenizer import END, PAD
from relakit.model import ModelConfig, Transformer
from relakit.nn.variants import AttentionSpec


def random_model(
    attention: str | AttentionSpec = "rela-g",
    *,
    vocabulary: int = 40,
    seed: int = 0,
    norm_first: bool = False,
    dim: int = 32,
    heads: int = 4,
    decoder_layers: int = 2,
    feed_forward: int = 48,
    options: Mapping[str, object] = MappingProxyType({}),
) -> Transformer:
    """A model in which no parameter has the value it starts training with.

    ``options`` are further fields of `ModelConfig`.
    """
    torch.manual_seed(seed)
    fields = {
        "vocabulary": vocabulary,
        "dim": dim,
        "heads": heads,
        "encoder_layers": 2,
        "decoder_layers": decoder_layers,
        "feed_forward": feed_forward,
        "encoder_attention": attention,
        "decoder_attention": attention,
        "cross_attention": attention,
        "norm_first": norm_first,
        **options,
    }
    config = ModelConfig.model_validate(fields)
    model = Transformer(config).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, mean=0.1 if parameter.dim() == 1 else 0.0, std=0.3)
    return model


def random_sources(lengths: list[int], vocabulary: int = 40, seed: int = 0) -> list[list[int]]:
    """Sentences of these lengths, without special tokens."""
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randint(END + 1, vocabulary, (length,), generator=generator).tolist()
        for length in lengths
    ]


def padded(sources: list[list[int]]) -> torch.Tensor:
    """The sentences as the encoder reads them."""
    longest = max(map(len, sources))
    return torch.tensor([[*s, END, *[PAD] * (longest - len(s))] for s in sources])

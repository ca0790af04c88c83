"""A model directory with random weights for the generated corpus."""

from collections.abc import Callable
from pathlib import Path

import torch
from small_tokenizer import small_tokenizer
from torch import nn

from relakit.data.generated import generate_pairs
from relakit.data.languages import LanguagePair
from relakit.model import ModelAbout, ModelConfig, Transformer, save_model

TRAINING = [(pair.source_text, pair.target_text) for pair in generate_pairs(300)]
ModelWriter = Callable[..., Path]


def write_clean_model(folder: Path, attention: str, reverse: bool, seed: int) -> Path:
    """Write ``folder/model``, with its languages."""
    tokenizer = small_tokenizer()
    tokenizer.save(folder / "tokenizer.json")
    torch.manual_seed(seed)
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
    )
    model = Transformer(config).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, mean=0.1 if parameter.dim() == 1 else 0.0, std=0.3)
    for layer in model.decoder.layers:
        # Pointed and below 0 for most, so that there are null queries.
        layer.cross_attention.query.weight.data *= 4
    # Large logits, so that what comes differs much from what the model would say.
    model.embedding.weight.data *= 4
    sides = list(zip(*TRAINING, strict=True))[:: -1 if reverse else 1]
    about = ModelAbout(*(("de", "en") if reverse else ("en", "de")))
    languages = LanguagePair.learn(*sides)
    return save_model(
        folder / "model", model, folder / "tokenizer.json", about, languages=languages
    )

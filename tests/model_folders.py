"""A model directory for tests: random weights that translate at random, but always alike."""

from pathlib import Path

import torch
from torch import nn

from relakit.data.tokenizer import learn_tokenizer
from relakit.model import ModelAbout, ModelConfig, Transformer, save_model

TEXTS = ("A small dog runs across the old bridge.", "Ein kleiner Hund läuft über die alte Brücke!")


def write_model(
    folder: Path,
    seed: int = 0,
    *,
    source: str = "en",
    target: str = "de",
    attention: str = "rela-g",
) -> Path:
    """Write the directory ``folder``; its parent also gets a tokenizer."""
    tokenizer = learn_tokenizer(TEXTS * 5, vocab_size=320)
    tokenizer.save(folder.parent / "tokenizer.json")
    torch.manual_seed(seed)
    config = ModelConfig(
        vocabulary=tokenizer.size,
        dim=32,
        heads=2,
        encoder_layers=1,
        decoder_layers=1,
        feed_forward=32,
        cross_attention=attention,
    )
    model = Transformer(config)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    about = ModelAbout(source_language=source, target_language=target)
    return save_model(folder, model, folder.parent / "tokenizer.json", about)

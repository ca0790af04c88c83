"""The models and the corpus that are trained and translated with."""

from pathlib import Path
from typing import Literal, cast

import torch

from relakit.data.prepared_reader import PreparedCorpus
from relakit.model import SIZES, ModelConfig, Transformer
from relakit.nn.variants import ATTENTIONS
from relakit.train.corpus import open_corpus
from relakit.train.recipe import DataSection, GeneratedData, ModelSection
from toolkits.settings import GENERATED, SpeedSettings


def peer_size(config: ModelConfig) -> dict[str, int]:
    """A model's size as the peers spell it."""
    return {
        "d_model": config.dim,
        "heads": config.heads,
        "layers": config.encoder_layers,
        "ffn": config.feed_forward,
        "vocab": config.vocabulary,
    }


def model_configs(settings: SpeedSettings, *, dropout: float = 0.0) -> dict[str, ModelConfig]:
    """relakit's models by the name of their attention."""
    if settings.size not in SIZES:
        raise ValueError(f"unknown size {settings.size!r}; choose one of {', '.join(SIZES)}")
    size = cast(Literal["tiny", "small", "base"], settings.size)
    for name in settings.attentions:
        if name not in ATTENTIONS:
            raise ValueError(f"unknown attention {name!r}; choose from {', '.join(ATTENTIONS)}")
    return {
        name: ModelSection(
            size=size, attention=name, dropout=dropout, attention_dropout=dropout
        ).config(settings.vocabulary)
        for name in settings.attentions
    }


def bench_corpus(settings: SpeedSettings, folder: Path, *, train: int, test: int) -> PreparedCorpus:
    """The corpus to work on; a generated one gets the given numbers of pairs."""
    if settings.corpus == GENERATED:
        data = DataSection(
            generated=GeneratedData(train=train, valid=1, test=test, seed=settings.seed),
            vocab_size=settings.vocabulary,
        )
    else:
        data = DataSection(prepared=Path(settings.corpus))
    return open_corpus(data, folder / "corpus")


def check_vocabulary(corpus: PreparedCorpus, settings: SpeedSettings) -> None:
    """Raise ValueError if the corpus has ids beyond the model's vocabulary."""
    if corpus.tokenizer.size > settings.vocabulary:
        raise ValueError(
            f"{corpus.folder} has a vocabulary of {corpus.tokenizer.size:,}, above --vocab "
            f"{settings.vocabulary:,}; set --vocab to it"
        )


def describe_model(config: ModelConfig) -> str:
    """Versions and parameters of a model of relakit, on one line."""
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in Transformer(config).parameters())
    return f"relakit, torch {torch.__version__}, {count:,} parameters"

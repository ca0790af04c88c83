"""The models, and the corpus that they train on and translate."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from relakit.data.prepared_reader import PreparedCorpus
from relakit.model import ATTENTION_KINDS, ModelConfig, Transformer, sized
from relakit.nn.variants import resolve_attention
from relakit.train.corpus import open_corpus
from relakit.train.recipe import DataSection, GeneratedData
from toolkits.settings import GENERATED, SpeedSettings

if TYPE_CHECKING:
    from relakit.nn.variants import AttentionName


def peer_size(config: ModelConfig) -> dict[str, int]:
    """A model's size under the names that the peers use."""
    return {
        "d_model": config.dim,
        "heads": config.heads,
        "layers": config.encoder_layers,
        "ffn": config.feed_forward,
        "vocab": config.vocabulary,
    }


def model_configs(settings: SpeedSettings, *, dropout: float = 0.0) -> dict[str, ModelConfig]:
    """relakit's models by attention name."""
    fields = {
        **sized(settings.size),
        "vocabulary": settings.vocabulary,
        "dropout": dropout,
        "attention_dropout": dropout,
    }
    configs = {}
    for name in settings.attentions:
        resolve_attention(cast("AttentionName", name))  # its error is shorter than pydantic's
        attentions = {f"{kind}_attention": name for kind in ATTENTION_KINDS}
        configs[name] = ModelConfig.model_validate({**fields, **attentions})
    return configs


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
    """Versions and parameter count of a relakit model, on one line."""
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in Transformer(config).parameters())
    return f"relakit, torch {torch.__version__}, {count:,} parameters"

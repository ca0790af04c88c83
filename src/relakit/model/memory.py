"""How much memory a model takes, from its settings alone: a rough estimate, rather too low."""

from relakit.amounts import format_bytes
from relakit.limits import MAX_FEATURES, MAX_LAYERS, MAX_VOCABULARY
from relakit.model.config import ModelConfig

FLOAT_BYTES = 4
ADAM_COPIES = 2
"""Adam's two moments of every weight."""
TRAINING_COPIES = 2 + ADAM_COPIES
"""Weights, gradients and Adam's two moments."""


def count_weights(config: ModelConfig) -> int:
    """The number of entries in all matrices; biases and norms are a thousandth of that."""
    square, inner = config.dim**2, config.dim * config.feed_forward
    source = config.source_entries if config.source_embedding == "separate" else 0
    return (
        (config.vocabulary + source) * config.dim
        + config.encoder_layers * (4 * square + 2 * inner)
        + config.decoder_layers * (8 * square + 2 * inner)
    )


def training_bytes(config: ModelConfig, tokens: int = 0) -> int:
    """The memory to train a model with batches of ``tokens`` tokens on each side.

    For a batch, only what the backward pass of linear layers needs is counted: their inputs.
    """
    encoder = config.encoder_layers * (4 * config.dim + config.feed_forward)
    decoder = config.decoder_layers * (7 * config.dim + config.feed_forward)
    return FLOAT_BYTES * (TRAINING_COPIES * count_weights(config) + tokens * (encoder + decoder))


def check_sizes(config: ModelConfig) -> None:
    """Raise ValueError, with the limit and the memory, for a size that no model has."""
    limits = {
        "vocabulary": MAX_VOCABULARY,
        "source_vocabulary": MAX_VOCABULARY,
        "dim": MAX_FEATURES,
        "heads": MAX_FEATURES,
        "feed_forward": MAX_FEATURES,
        "encoder_layers": MAX_LAYERS,
        "decoder_layers": MAX_LAYERS,
    }
    for key, limit in limits.items():
        value = getattr(config, key)
        if value is not None and value > limit:
            raise ValueError(
                f"{key} must be at most {limit:,}, got {value:,}; training such a model would "
                f"need about {format_bytes(training_bytes(config))} of memory"
            )

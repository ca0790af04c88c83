"""Estimates of memory: near the truth for real models, and large for absurd ones."""

import pytest
from random_models import random_model

from relakit.model import ModelConfig
from relakit.model.memory import check_sizes, count_weights, training_bytes


@pytest.mark.parametrize("source_embedding", ["shared", "separate"])
def test_weights_are_counted_without_building(source_embedding: str) -> None:
    model = random_model(
        vocabulary=500,
        dim=128,
        decoder_layers=3,
        feed_forward=300,
        options={"source_embedding": source_embedding},
    )
    matrices = sum(p.numel() for p in model.parameters() if p.dim() == 2)
    assert count_weights(model.config) == matrices
    assert matrices > 0.97 * sum(p.numel() for p in model.parameters())


def test_memory_of_training_grows_with_model_and_batch() -> None:
    config = ModelConfig(vocabulary=1000, dim=64, heads=1)
    assert training_bytes(config) == 16 * count_weights(config)
    # 6 layers of each kind: inputs of 4 or 7 linear layers, and of one with 2,048 features.
    assert training_bytes(config, 10) - training_bytes(config) == 40 * 6 * (11 * 64 + 2 * 2048)


def test_sizes_that_no_model_has() -> None:
    check_sizes(ModelConfig(vocabulary=1_000_000, dim=1 << 20, encoder_layers=1000))
    for key, value in {"vocabulary": 10**7, "dim": 1 << 21, "decoder_layers": 1001}.items():
        config = ModelConfig.model_validate({"vocabulary": 9, key: value})
        with pytest.raises(ValueError, match=f"^{key} must be at most .*, got {value:,}; training"):
            check_sizes(config)

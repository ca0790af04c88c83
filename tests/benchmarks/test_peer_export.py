"""Weights for the peers: a model, exported, means the same to the peers' NumPy transcription."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import torch
import weights
from torch import nn

from relakit.data.tokenizer import BEGIN, END, PAD
from relakit.model import ModelConfig, Transformer
from toolkits.peer_weights import peer_arrays, why_no_peer_has_it, write_peer_weights


def config(**changed: Any) -> ModelConfig:
    attention = changed.pop("attention", "softmax")
    kinds = {f"{kind}_attention": attention for kind in ("encoder", "decoder", "cross")}
    fields = {
        "vocabulary": 30, "dim": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2,
        "feed_forward": 24, **kinds, **changed,
    }  # fmt: skip
    return ModelConfig(**fields)


def random_model() -> Transformer:
    model = Transformer(config()).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, mean=0.1 if parameter.dim() == 1 else 0.0, std=0.3)
    return model


def test_logits_are_those_of_the_transcription(tmp_path: Path) -> None:
    model, path = random_model(), tmp_path / "weights.safetensors"
    write_peer_weights(path, model)
    source = np.array([[7, 8, 9, 10, END], [11, 12, END, PAD, PAD]])
    target = np.array([[BEGIN, 5, 6, 20], [BEGIN, 21, 22, 23]])
    expected = reference.logits(weights.read_weights(path), source, target)
    with torch.no_grad():
        states = model(torch.from_numpy(source), torch.from_numpy(target))
        found = model.logits(states).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_no_weight_is_left_out() -> None:
    model = random_model()
    exported = sum(array.numel() for array in peer_arrays(model).values())
    assert exported == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"attention": "rela-g"}, "softmax attention only, not rela-g"),
        ({"norm_first": True}, "post-norm"),
        ({"decoder_layers": 1}, r"encoder \(2\) as in the decoder \(1\)"),
    ],
)
def test_models_that_no_peer_has(changed: dict[str, Any], reason: str) -> None:
    assert why_no_peer_has_it(config()) is None
    with pytest.raises(ValueError, match=reason):
        peer_arrays(Transformer(config(**changed)))

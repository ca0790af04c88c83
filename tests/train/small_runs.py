"""Recipes of runs that take a second, and what they leave."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from relakit.data.prepared_reader import PreparedCorpus
from relakit.train.recipe import Recipe
from relakit.train.recipe_file import make_recipe
from relakit.train.run_folder import LOG

MODEL = {
    "size": "tiny", "dim": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1,
    "feed_forward": 64,
}  # fmt: skip
TRAINING = {
    "updates": 24, "batch_tokens": 150, "update_tokens": 300, "warmup": 30,
    "learning_rate_factor": 0.3, "checkpoint_every": 5, "keep": 3, "threads": 1, "device": "cpu",
}  # fmt: skip


def recipe_of(corpus: PreparedCorpus, **changed: Any) -> Recipe:
    content = {
        "data": {"prepared": str(corpus.folder)},
        "model": {**MODEL, **changed.pop("model", {})},
        "training": {**TRAINING, **changed.pop("training", {})},
        "validation": {"every": 10, "bleu": False, **changed.pop("validation", {})},
        **changed,
    }
    return make_recipe(content, "test")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def read_updates(folder: Path) -> list[dict[str, Any]]:
    """A run's log, without validations."""
    entries = map(json.loads, (folder / LOG).read_text(encoding="utf-8").splitlines())
    return [entry for entry in entries if entry["kind"] == "update"]


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name

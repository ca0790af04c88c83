"""Model directories: written whole, read back the same, and clear about what is broken."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from relakit.model import ModelAbout, ModelConfig, Transformer, load_model, save_model
from relakit.model.config import ModelOptions


def build() -> Transformer:
    torch.manual_seed(1)
    return Transformer(
        ModelConfig(
            vocabulary=30,
            dim=8,
            heads=2,
            encoder_layers=1,
            decoder_layers=2,
            feed_forward=12,
            cross_attention="softmax",
        )
    )


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> Path:
    path = tmp_path / "some-tokenizer.json"
    path.write_text("{}", encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path, tokenizer_file: Path) -> Path:
    about = ModelAbout("en", "de", {"updates": 7}, longest_sentence=57)
    return save_model(tmp_path / "model", build(), tokenizer_file, about)


def test_comes_back_the_same(folder: Path) -> None:
    model, about = load_model(folder)
    assert model.config == build().config
    assert about == ModelAbout("en", "de", {"updates": 7}, longest_sentence=57)
    assert not model.training
    expected = build().state_dict()
    assert model.state_dict().keys() == expected.keys()
    assert all(torch.equal(model.state_dict()[name], expected[name]) for name in expected)


def test_loading_draws_no_random_numbers(folder: Path) -> None:
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    load_model(folder)
    after = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    assert torch.equal(after[0], before[0])
    assert after[1:] == before[1:]


def test_what_is_not_saved_is_computed(folder: Path) -> None:
    """A buffer that nobody fills would hold whatever the memory held."""
    model, _ = load_model(folder)
    fresh = Transformer(model.config)
    expected = dict(fresh.named_buffers())
    assert expected
    torch.testing.assert_close(dict(model.named_buffers()), expected)
    source = torch.tensor([[5, 6, 7]])
    fresh.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(source, source), fresh.eval()(source, source))


def test_a_device_that_there_is_not(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"device 'gpu' cannot be used: there is no such kind"):
        load_model(folder, device="gpu")


def test_a_model_from_before_there_were_options(folder: Path) -> None:
    options = set(ModelOptions.model_fields) - {"dropout", "attention_dropout", "norm_first"}

    def forget(content: dict[str, Any]) -> None:
        for name in options:
            del content["model"][name]

    change_config(folder, forget)
    model, _ = load_model(folder)
    assert model.config == build().config


def test_a_model_from_before_there_was_a_digest(folder: Path) -> None:
    for key in ("tokenizer_sha256", "longest_sentence"):
        change_config(folder, lambda content, key=key: content.pop(key))
    (folder / "tokenizer.json").write_text("{} ")
    _, about = load_model(folder)
    assert (about.tokenizer_sha256, about.longest_sentence) == (None, None)


def test_a_model_with_all_options_comes_back_the_same(tmp_path: Path, tokenizer_file: Path) -> None:
    config = build().config.model_copy(
        update={
            "source_embedding": "separate",
            "embedding_bias": True,
            "first_input": "zeros",
            "timescales": "tensor2tensor",
            "norm_eps": 1e-8,
        }
    )
    model = Transformer(config).eval()
    folder = save_model(tmp_path / "optional", model, tokenizer_file)
    found, _ = load_model(folder)
    assert found.config == config
    source, target = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7]])
    assert torch.equal(found(source, target), model(source, target))


def test_three_files_and_no_more(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["config.json", "model.safetensors", "tokenizer.json"]
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert content["model"]["cross_attention"] == "softmax"


def test_replaces_a_model_but_nothing_else(folder: Path, tokenizer_file: Path) -> None:
    weights = {name: x + 1 for name, x in build().state_dict().items()}
    (folder / "aligner.json").write_text("of the old model")
    save_model(folder, build(), tokenizer_file, weights=weights)
    assert not (folder / "aligner.json").exists()
    model, about = load_model(folder)
    assert about == ModelAbout()
    assert torch.equal(model.state_dict()["embedding.weight"], weights["embedding.weight"])
    assert sorted(p.name for p in folder.parent.iterdir()) == ["model", "some-tokenizer.json"]
    other = folder.parent / "photos"
    other.mkdir()
    (other / "cat.txt").write_text("meow", encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"photos holds 'cat\.txt', which is not part of"):
        save_model(other, build(), tokenizer_file)
    assert (other / "cat.txt").exists()


def change_config(folder: Path, change: Callable[[dict], None]) -> None:  # type: ignore[type-arg]
    path = folder / "config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def truncate(path: Path, count: int) -> None:
    path.write_bytes(path.read_bytes()[:count])


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (
        lambda f: (f / "config.json").unlink(), r"no model directory: it has no config\.json",
    ),
    "config is cut off": (lambda f: truncate(f / "config.json", 40), r"config\.json is no JSON"),
    "config is not text": (
        lambda f: (f / "config.json").write_bytes(b"\xff\xff"),
        r"config\.json is not UTF-8 \(byte 0xff",
    ),
    "config of another tool": (
        lambda f: (f / "config.json").write_text('{"model_type": "marian"}'),
        r'config\.json is not of a relakit model: it has no "format": "relakit-model"',
    ),
    "config is a list": (
        lambda f: (f / "config.json").write_text("[]"), r"is not of a relakit model",
    ),
    "a later version": (
        lambda f: change_config(f, lambda c: c.update(version=2)),
        r"has version 2 of the format, this relakit reads version 1",
    ),
    "unknown setting": (
        lambda f: change_config(f, lambda c: c["model"].update(rotary=True)),
        r"config\.json: unknown key model\.rotary",
    ),
    "missing setting": (
        lambda f: change_config(f, lambda c: c["model"].pop("vocabulary")),
        r"config\.json: model\.vocabulary is missing",
    ),
    "model is missing": (
        lambda f: change_config(f, lambda c: c.update(model=None)), r"model = None: must have keys",
    ),
    "languages are a list": (
        lambda f: change_config(f, lambda c: c.update(languages=["en", "de"])),
        r"config\.json: languages must be an object, got \['en', 'de'\]",
    ),
    "no weights": (
        lambda f: (f / "model.safetensors").unlink(),
        r" has no model\.safetensors; a model directory needs one",
    ),
    "weights are cut off": (
        lambda f: truncate(f / "model.safetensors", 1000),
        r"model\.safetensors \(1,000 bytes\) is truncated or no safetensors file",
    ),
    "weights are something else": (
        lambda f: (f / "model.safetensors").write_bytes(b"PK\x03\x04 a zip file, say"),
        r"is truncated or no safetensors file",
    ),
    "a tensor is missing": (
        lambda f: change_weights(f, lambda w: w.pop("embedding.weight")),
        r"does not fit config\.json: it lacks 1 tensor, such as embedding\.weight",
    ),
    "an unknown tensor": (
        lambda f: change_weights(f, lambda w: w.update(extra=torch.ones(1))),
        r"does not fit config\.json: it has 1 unknown tensor, such as extra",
    ),
    "another shape": (
        lambda f: change_config(f, lambda c: c["model"].update(vocabulary=31)),
        r"config\.json says model\.vocabulary = 31, but model\.safetensors beside it has the "
        "weights of a model with 30: they do not belong together",
    ),
    "a dimension less": (
        lambda f: change_weights(f, lambda w: w.update({"embedding.weight": torch.ones(30)})),
        r"embedding\.weight has shape \(30,\) instead of \(30, 8\)",
    ),
    "absurd layers": (
        lambda f: change_config(f, lambda c: c["model"].update(encoder_layers=100_000_000)),
        r"model\.encoder_layers = 100,000,000, but .* of a model with 1: they do not belong",
    ),
    "absurd features": (
        lambda f: change_config(f, lambda c: c["model"].update(dim=10**18)),
        r"model\.dim = 1,000,000,000,000,000,000, but .* of a model with 8: they do not belong",
    ),
    "absurd feed-forward layers": (
        lambda f: change_config(f, lambda c: c["model"].update(feed_forward=10**18)),
        r"model\.feed_forward = 1(,000){6}, but .* of a model with 12: they do not belong",
    ),
    "too few layers": (
        lambda f: change_config(f, lambda c: c["model"].update(decoder_layers=1)),
        r"model\.decoder_layers = 1, but .* of a model with 2: they do not belong",
    ),
    "another tokenizer": (
        lambda f: (f / "tokenizer.json").write_text("{} "),
        r"tokenizer\.json is not the tokenizer that this model was trained with: its SHA-256 is "
        r"\w{12}\.\.\., config\.json says 44136fa355b3\.\.\.; put back the file that was there",
    ),
    "a digest of another type": (
        lambda f: change_config(f, lambda c: c.update(tokenizer_sha256=7)),
        r"config\.json: tokenizer_sha256 must be text, got 7",
    ),
    "nested without end": (
        lambda f: (f / "config.json").write_text("[" * 100_000), r"it is nested too deeply",
    ),
    "gigabytes of settings": (
        lambda f: os.truncate(f / "config.json", 3 << 30),
        r"config\.json has 3,221,225,472 bytes, which is no file of settings: they have at most",
    ),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), r"has no tokenizer\.json"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_directories(name: str, folder: Path) -> None:
    damage, message = BROKEN[name]
    damage(folder)
    with pytest.raises((OSError, ValueError), match=message) as raised:
        load_model(folder)
    assert str(folder) in str(raised.value)


def test_no_directory_at_all(tmp_path: Path, tokenizer_file: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match="nowhere is no model directory: there is no such folder"
    ):
        load_model(tmp_path / "nowhere")
    with pytest.raises(
        FileNotFoundError, match=r"is no model directory: it is a file; name its folder"
    ):
        load_model(tokenizer_file)

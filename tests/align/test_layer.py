"""The alignment layer: what it computes, and how it is kept."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from model_folders import write_model
from random_models import random_model
from torch import Tensor, nn

from relakit.align.aligner import Aligner
from relakit.align.layer import AlignmentLayer, load_layer, save_layer
from relakit.align.layer_files import LayerScores, LayerTrained, layer_weights
from relakit.align.settings import (
    CHOICE_FILE,
    LAYER_FILE,
    LAYER_WEIGHTS,
    NEXT_LAYER_WEIGHTS,
)
from relakit.analysis.pairs import AnalysisPair
from relakit.data.tokenizer import BEGIN, END, Tokenizer
from relakit.model import Transformer, load_model
from relakit.model.description import ALIGNMENT_FILES, WEIGHTS_FILE
from relakit.model.tensor_file import write_tensors

TRAINED = LayerTrained(
    by="one model",
    pairs=3,
    epochs=1.0,
    seed=1,
    scores=LayerScores(pairs=1, loss=0.5, aer=0.25, against="teacher"),
)


def random_layer(dim: int, seed: int = 5) -> AlignmentLayer:
    torch.manual_seed(seed)
    layer = AlignmentLayer(dim)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.2)
    return layer


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Transformer:
    return random_model("rela-g", vocabulary=tokenizer.size)


def normal(states: Tensor) -> Tensor:
    centred = states - states.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def expected_weights(
    model: Transformer, layer: AlignmentLayer, source: list[int], target: list[int]
) -> Tensor:
    """Of one pair without padding, token by token, as the module's docstring says."""
    ids = torch.tensor([[*source, END]]), torch.tensor([[BEGIN, *target]])
    memory = model.encode(ids[0])
    last, below = model.decode(ids[1], memory)[0], model.decode(ids[1], memory, layers=1)[0]
    scale = math.sqrt(model.config.dim)
    weights = torch.zeros(len(target), len(source))
    for t, target_id in enumerate(target):
        embedded = model.embedding.weight[target_id] * scale
        query = layer.query(torch.cat([normal(last[t]), normal(below[t + 1]), normal(embedded)]))
        for s, source_id in enumerate(source):
            embedded = model.embedding.weight[source_id] * scale
            key = layer.key(torch.cat([normal(memory.states[0, s]), normal(embedded)]))
            weights[t, s] = F.relu(query @ key / scale + layer.bias + 2)
    return weights


def test_weights_of_single_pairs(model: Transformer) -> None:
    layer = random_layer(model.config.dim)
    pairs = [([7, 8, 9], [11, 12]), ([20], [21, 22, 23, 24]), ([31, 32], [33])]
    found = dict(layer.weights(model, pairs))
    assert sorted(found) == [0, 1, 2]
    with torch.no_grad():
        for number, (source, target) in enumerate(pairs):
            weights = found[number]
            assert weights.shape == (len(target) + 1, len(source) + 1)
            assert not weights[-1].any(), "the end of the target"
            assert not weights[:, -1].any(), "the end of the source"
            expected = expected_weights(model, layer, source, target).numpy()
            np.testing.assert_allclose(weights[:-1, :-1], expected, rtol=1e-3, atol=1e-4)
    together = np.concatenate([weights[:-1, :-1].ravel() for weights in found.values()])
    assert 0 < (together == 0).sum() < together.size, "some are exactly zero"


def test_no_pair_depends_on_the_others(
    model: Transformer, tokenizer: Tokenizer, gold_pairs: list[AnalysisPair]
) -> None:
    aligner = Aligner(model, tokenizer, layer=random_layer(model.config.dim))
    together = list(aligner.align(gold_pairs))
    assert list(aligner.align(gold_pairs, batch_tokens=1)) == together
    assert list(aligner.align(reversed(gold_pairs))) == together[::-1]
    assert [next(aligner.align([pair])) for pair in gold_pairs] == together
    assert any(one.scores for one in together)


def test_a_word_may_have_several_links_or_none(
    model: Transformer, tokenizer: Tokenizer, gold_pairs: list[AnalysisPair]
) -> None:
    layer = random_layer(model.config.dim)
    layer.raise_threshold(4.0)
    found = list(Aligner(model, tokenizer, layer=layer).align(gold_pairs))
    assert any(len(one.links) > len({t for _, t in one.links}) for one in found)
    assert any(one.unaligned_target for one in found)
    assert any(one.null_rate for one in found)
    with torch.no_grad():
        layer.bias.fill_(-1e6)
    nothing = list(Aligner(model, tokenizer, layer=layer).align(gold_pairs))
    assert {(len(one.links), one.null_rate) for one in nothing} == {(0, 1.0)}


def test_an_aligner_needs_heads_or_a_layer(model: Transformer, tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="give a choice or a layer"):
        Aligner(model, tokenizer)


def test_round_trip(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    model, _ = load_model(folder)
    layer = random_layer(model.config.dim)
    assert save_layer(folder, layer, TRAINED) == folder / LAYER_FILE
    read, about = load_layer(folder, model)
    assert about.trained == TRAINED
    for name, tensor in layer.state_dict().items():
        assert torch.equal(read.state_dict()[name], tensor)
    files = {LAYER_FILE, LAYER_WEIGHTS, NEXT_LAYER_WEIGHTS, CHOICE_FILE}
    assert files == set(ALIGNMENT_FILES)


def test_a_layer_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at any moment, the directory has the old layer or the new one."""
    folder = write_model(tmp_path / "model")
    model, _ = load_model(folder)
    layers = [random_layer(model.config.dim, seed) for seed in range(4)]

    def layer_is(expected: AlignmentLayer) -> bool:
        return torch.equal(load_layer(folder, model)[0].query.weight, expected.query.weight)

    for layer in layers[:3]:
        save_layer(folder, layer, TRAINED)
        assert layer_is(layer)
        weights = [path.name for path in folder.glob("aligner*.safetensors")]
        assert len(weights) == 1, "what was replaced is gone"

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("relakit.align.layer.write_whole", killed)
        with pytest.raises(KeyboardInterrupt):
            save_layer(folder, layers[3], TRAINED)
    assert layer_is(layers[2])
    unlink = Path.unlink

    def killed_at_the_end(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".safetensors":
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed_at_the_end)
        with pytest.raises(KeyboardInterrupt):
            save_layer(folder, layers[3], TRAINED)
    assert layer_is(layers[3])
    save_layer(folder, layers[0], TRAINED)
    assert layer_is(layers[0])
    assert len(list(folder.glob("aligner*.safetensors"))) == 1


def test_an_aligner_uses_the_layer_that_is_there(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    model, _ = load_model(folder)
    save_layer(folder, random_layer(model.config.dim), TRAINED)
    assert Aligner.load(folder).layer is not None
    with pytest.raises(ValueError, match="does not say which heads align"):
        Aligner.load(folder, use_layer=False)


def test_of_another_model(tmp_path: Path) -> None:
    folder, other = write_model(tmp_path / "model"), write_model(tmp_path / "other", seed=1)
    model, _ = load_model(folder)
    save_layer(folder, random_layer(model.config.dim), TRAINED)
    (folder / WEIGHTS_FILE).write_bytes((other / WEIGHTS_FILE).read_bytes())
    with pytest.raises(
        ValueError, match=r"aligner\.json is of another model: the SHA-256 of model"
    ) as error:
        Aligner.load(folder)
    assert "train it again with relakit train-aligner, or delete it" in str(error.value)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": 2}, "format = 2: must be 1"),
        ({"dim": None}, "dim is missing"),
        ({"colour": "red"}, "colour"),
        ({"dim": 64}, "dim must be 32, as the model has it, got 64"),
        ({"layer_sha256": "0" * 64}, "does not belong to aligner.safetensors"),
    ],
)
def test_damaged(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    folder = write_model(tmp_path / "model")
    model, _ = load_model(folder)
    path = save_layer(folder, random_layer(model.config.dim), TRAINED)
    content = json.loads(path.read_text()) | change
    path.write_text(json.dumps({k: v for k, v in content.items() if v is not None}))
    with pytest.raises(ValueError, match=problem) as error:
        load_layer(folder, model)
    assert str(path) in str(error.value)


def test_weights_that_are_missing_or_others(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    model, _ = load_model(folder)
    save_layer(folder, AlignmentLayer(8), TRAINED)
    with pytest.raises(ValueError, match="dim must be 32"):
        load_layer(folder, model)
    layer = random_layer(model.config.dim)
    layer.query = nn.Linear(3, 32)
    save_layer(folder, layer, TRAINED)
    with pytest.raises(ValueError, match="does not hold the weights of an alignment layer"):
        load_layer(folder, model)
    weights = layer_weights(folder)
    assert weights == folder / NEXT_LAYER_WEIGHTS, "the second one's"
    write_tensors(weights, {"bias": torch.zeros(())})
    with pytest.raises(ValueError, match="does not belong to"):
        load_layer(folder, model)
    weights.unlink()
    with pytest.raises(FileNotFoundError, match=r"aligner-2\.safetensors is missing"):
        load_layer(folder, model)

"""The weights that all peers share, and the NumPy model that the peers are checked against."""

import math
from pathlib import Path

import numpy as np
import pytest
import reference
import torch
from batches import BEGIN, END, PAD, padded
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn
from weights import (
    EPS,
    Size,
    Weights,
    expected_shapes,
    joeynmt_state,
    marian_state,
    positions,
    random_weights,
    read_weights,
    write_weights,
)

SIZE = Size(d_model=8, heads=2, layers=2, ffn=12, vocab=11)


def torch_layer(stack: str, number: int, weights: Weights) -> nn.Module:
    """PyTorch's own layer with the same weights."""
    kind = nn.TransformerEncoderLayer if stack == "encoder" else nn.TransformerDecoderLayer
    size = weights.size
    layer = kind(size.d_model, size.heads, size.ffn, dropout=0.0, batch_first=True)
    given = {name: torch.from_numpy(array) for name, array in weights.arrays.items()}
    prefix = f"{stack}.{number}"
    state = {}
    attentions = [("self", "self_attn")] + [("cross", "multihead_attn")] * (stack == "decoder")
    for ours, theirs in attentions:
        for piece in ("weight", "bias"):
            parts = [given[f"{prefix}.{ours}.{p}.{piece}"] for p in ("query", "key", "value")]
            state[f"{theirs}.in_proj_{piece}"] = torch.cat(parts)
            state[f"{theirs}.out_proj.{piece}"] = given[f"{prefix}.{ours}.output.{piece}"]
    for piece in ("weight", "bias"):
        state[f"linear1.{piece}"] = given[f"{prefix}.feedforward.inner.{piece}"]
        state[f"linear2.{piece}"] = given[f"{prefix}.feedforward.outer.{piece}"]
        for place, (ours, _) in enumerate([*attentions, ("feedforward", "")], start=1):
            state[f"norm{place}.{piece}"] = given[f"{prefix}.{ours}.norm.{piece}"]
    layer.load_state_dict(state)
    return layer.eval()


def test_the_reference_computes_what_pytorch_layers_compute() -> None:
    weights = random_weights(SIZE, seed=1)
    source = padded([[4, 5, 6, END], [7, END]])
    inputs = padded([[BEGIN, 5, 9], [BEGIN, 4, 10]])
    embedding = torch.from_numpy(weights.arrays["embedding"])

    def embed(ids: Tensor) -> Tensor:
        table = torch.from_numpy(positions(ids.shape[1], SIZE.d_model))
        return embedding[ids] * math.sqrt(SIZE.d_model) + table

    hidden = torch.from_numpy(source == PAD)
    later = nn.Transformer.generate_square_subsequent_mask(3)
    with torch.no_grad():
        memory = embed(torch.from_numpy(source))
        for i in range(SIZE.layers):
            memory = torch_layer("encoder", i, weights)(memory, src_key_padding_mask=hidden)
        state = embed(torch.from_numpy(inputs))
        for i in range(SIZE.layers):
            layer = torch_layer("decoder", i, weights)
            state = layer(state, memory, tgt_mask=later, memory_key_padding_mask=hidden)
        expected = (state @ embedding.T).numpy()
    # The encoder's fast path may leave zeros where the source is padding; nothing attends there.
    np.testing.assert_allclose(reference.logits(weights, source, inputs), expected, atol=1e-5)
    assert nn.LayerNorm(1).eps == EPS


def test_positions_are_sines_then_cosines() -> None:
    table = positions(20, 6)
    for position in range(20):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            assert table[position, i] == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 3 + i] == pytest.approx(math.cos(angle), abs=1e-6)


def test_weights_survive_the_file(tmp_path: Path) -> None:
    weights = random_weights(SIZE, seed=2)
    write_weights(tmp_path / "weights", weights)
    found = read_weights(tmp_path / "weights")
    assert found.size == SIZE
    assert set(found.arrays) == set(expected_shapes(SIZE))
    for name, array in found.arrays.items():
        np.testing.assert_array_equal(array, weights.arrays[name])


def test_wrong_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    write_weights(path, random_weights(SIZE, seed=2))
    arrays = load_file(path)
    save_file(arrays, path)
    with pytest.raises(ValueError, match="lack 'heads'"):
        read_weights(path)
    save_file({"x": np.zeros(1)}, path, metadata={"heads": "2"})
    with pytest.raises(ValueError, match="not a file of weights"):
        read_weights(path)
    arrays["decoder.1.cross.key.bias"] = np.zeros(7, dtype=np.float32)
    save_file(arrays, path, metadata={"heads": "2"})
    with pytest.raises(
        ValueError, match=r"decoder\.1\.cross\.key\.bias has shape \(7,\), expected \(8,\)"
    ):
        read_weights(path)


def test_every_array_goes_to_every_peer() -> None:
    weights = random_weights(SIZE, seed=3)
    for state in (marian_state(weights), joeynmt_state(weights, table_length=10)):
        used = {id(array) for array in state.values()}
        assert {id(array) for array in weights.arrays.values()} <= used


def test_a_size_is_complete() -> None:
    with pytest.raises(ValueError, match=r"\['d_model', 'heads', 'layers', 'ffn', 'vocab'\]"):
        Size.of_request({"d_model": 8})

"""One set of weights for every toolkit.

A file of weights is a safetensors file of float32 arrays. Its metadata holds the number of heads
(``{"heads": "4"}``); all other sizes follow from the arrays. Linear weights are [out, in]. Names,
with ``i`` from 0 to layers - 1:

    embedding                                   [vocab, d]   source, target and output
    encoder.i.self.{query,key,value,output}.{weight,bias}
    encoder.i.self.norm.{weight,bias}                        after the residual
    encoder.i.feedforward.{inner,outer}.{weight,bias}        ReLU in between
    encoder.i.feedforward.norm.{weight,bias}
    decoder.i.self..., decoder.i.cross..., decoder.i.feedforward...   likewise

The model: post-norm encoder-decoder Transformer without final norms; LayerNorm with eps 1e-5;
embeddings multiplied by sqrt(d), then ``positions`` added; no bias on the logits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

Floats = npt.NDArray[np.float32]

EPS = 1e-5
POSITIONS = 1024


@dataclass(frozen=True)
class Size:
    """The sizes that the toolkits must have in common."""

    d_model: int
    heads: int
    layers: int
    ffn: int
    vocab: int

    @classmethod
    def of_request(cls, size: Mapping[str, Any]) -> "Size":
        names = list(cls.__dataclass_fields__)
        if sorted(size) != sorted(names):
            raise ValueError(f"a size has the fields {names}, not {list(size)}")
        return cls(**{name: int(size[name]) for name in names})


@dataclass(frozen=True)
class Weights:
    size: Size
    arrays: dict[str, Floats]


def expected_shapes(size: Size) -> dict[str, tuple[int, ...]]:
    """The names and shapes of all arrays."""
    shapes: dict[str, tuple[int, ...]] = {"embedding": (size.vocab, size.d_model)}
    for stack, attentions in (("encoder", ["self"]), ("decoder", ["self", "cross"])):
        for layer in (f"{stack}.{i}" for i in range(size.layers)):
            linears = {
                f"{layer}.{attention}.{part}": (size.d_model, size.d_model)
                for attention in attentions
                for part in ("query", "key", "value", "output")
            }
            linears[f"{layer}.feedforward.inner"] = (size.ffn, size.d_model)
            linears[f"{layer}.feedforward.outer"] = (size.d_model, size.ffn)
            for name, shape in linears.items():
                shapes[f"{name}.weight"], shapes[f"{name}.bias"] = shape, shape[:1]
            for part in (*attentions, "feedforward"):
                for kind in ("weight", "bias"):
                    shapes[f"{layer}.{part}.norm.{kind}"] = (size.d_model,)
    return shapes


def read_weights(path: str | Path) -> Weights:
    with safe_open(path, "np") as file:
        metadata = file.metadata() or {}
    arrays = {name: array.astype(np.float32) for name, array in load_file(path).items()}
    if "heads" not in metadata:
        raise ValueError(f"{path}: the metadata lack 'heads'")
    if "embedding" not in arrays or "encoder.0.feedforward.inner.weight" not in arrays:
        raise ValueError(f"{path}: not a file of weights; it holds {sorted(arrays)[:5]} ...")
    vocab, d_model = arrays["embedding"].shape
    ffn = len(arrays["encoder.0.feedforward.inner.weight"])
    layers = len({name.split(".")[1] for name in arrays if name.startswith("encoder.")})
    size = Size(d_model, int(metadata["heads"]), layers, ffn, vocab)
    expected = expected_shapes(size)
    found = {name: array.shape for name, array in arrays.items()}
    wrong = [name for name in {*expected, *found} if expected.get(name) != found.get(name)]
    if wrong:
        name = min(wrong)
        raise ValueError(
            f"{path}: {name} has shape {found.get(name)}, expected {expected.get(name)} "
            f"({len(wrong)} arrays differ)"
        )
    return Weights(size, arrays)


def write_weights(path: str | Path, weights: Weights) -> None:
    save_file(weights.arrays, path, metadata={"heads": str(weights.size.heads)})


def random_weights(size: Size, seed: int) -> Weights:
    """Random weights for which every part matters: no bias is 0, no gain is 1."""
    generator = np.random.default_rng(seed)
    arrays = {}
    for name, shape in expected_shapes(size).items():
        if name == "embedding":
            array = generator.normal(0, size.d_model**-0.5, shape)
        elif len(shape) == 2:
            array = generator.normal(0, shape[1] ** -0.5, shape)
        else:
            array = generator.normal(0, 0.1, shape) + name.endswith("norm.weight")
        arrays[name] = array.astype(np.float32)
    return Weights(size, arrays)


def positions(length: int, d_model: int) -> Floats:
    """Position p: sin(p / 10000^(2i/d)) for i < d/2, then the cosines of the same angles."""
    frequencies = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    angles = np.arange(length)[:, None] * frequencies
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def _renamed(
    arrays: Mapping[str, Floats], parts: Mapping[str, str], prefix: str = ""
) -> dict[str, Floats]:
    """The arrays of all layers with other names for their parts (``"encoder self.query"``)."""
    renamed = {}
    for name, array in arrays.items():
        if name != "embedding":
            stack, layer, part = name.split(".", 2)
            module, kind = part.rsplit(".", 1)
            renamed[f"{prefix}{stack}.layers.{layer}.{parts[f'{stack} {module}']}.{kind}"] = array
    return renamed


_MARIAN_ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
_MARIAN_PARTS = {
    **{
        f"{stack} {ours}.{part}": f"{theirs}.{their_part}"
        for stack in ("encoder", "decoder")
        for ours, theirs in (("self", "self_attn"), ("cross", "encoder_attn"))
        for part, their_part in _MARIAN_ATTENTION.items()
    },
    **{
        f"{stack} {ours}": theirs
        for stack in ("encoder", "decoder")
        for ours, theirs in (
            ("self.norm", "self_attn_layer_norm"),
            ("cross.norm", "encoder_attn_layer_norm"),
            ("feedforward.inner", "fc1"),
            ("feedforward.outer", "fc2"),
            ("feedforward.norm", "final_layer_norm"),
        )
    },
}


def marian_state(weights: Weights) -> dict[str, Floats]:
    """The complete state of a Hugging Face ``MarianMTModel`` with ``POSITIONS`` positions."""
    embedding = weights.arrays["embedding"]
    state = _renamed(weights.arrays, _MARIAN_PARTS, prefix="model.")
    for name in ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens"):
        state[f"{name}.weight"] = embedding
    for stack in ("encoder", "decoder"):
        table = positions(POSITIONS, weights.size.d_model)
        state[f"model.{stack}.embed_positions.weight"] = table
    state["lm_head.weight"] = embedding
    state["final_logits_bias"] = np.zeros((1, weights.size.vocab), dtype=np.float32)
    return state


_JOEY_ATTENTION = {
    "query": "q_layer",
    "key": "k_layer",
    "value": "v_layer",
    "output": "output_layer",
}
_JOEY_PARTS = {
    **{
        f"{ours}.{part}": f"{theirs}.{their_part}"
        for ours, theirs in (
            ("encoder self", "src_src_att"),
            ("decoder self", "trg_trg_att"),
            ("decoder cross", "src_trg_att"),
        )
        for part, their_part in _JOEY_ATTENTION.items()
    },
    "encoder self.norm": "layer_norm",
    "decoder self.norm": "x_layer_norm",
    "decoder cross.norm": "dec_layer_norm",
    **{
        f"{stack} feedforward.{ours}": f"feed_forward.{theirs}"
        for stack in ("encoder", "decoder")
        for ours, theirs in (
            ("inner", "pwff_layer.0"),
            ("outer", "pwff_layer.3"),
            ("norm", "layer_norm"),
        )
    },
}


def joeynmt_state(weights: Weights, table_length: int) -> dict[str, Floats]:
    """The complete state of a JoeyNMT model with tied embeddings.

    Our table of positions replaces its own, which interleaves sines and cosines. Its LayerNorms
    have eps 1e-6, which is not part of the state.
    """
    embedding = weights.arrays["embedding"]
    state = _renamed(weights.arrays, _JOEY_PARTS)
    for name in ("src_embed.lut", "trg_embed.lut", "decoder.output_layer"):
        state[f"{name}.weight"] = embedding
    for stack in ("encoder", "decoder"):
        state[f"{stack}.pe.pe"] = positions(table_length, weights.size.d_model)[None]
    return state

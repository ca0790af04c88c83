"""Weights as a CTranslate2 model directory.

CTranslate2's converter for Hugging Face's Marian is not used: it drops the last word of the
vocabulary, which Marian reserves for padding, and starts decoding from a zero vector instead of
BEGIN.
"""

from pathlib import Path
from typing import Any

import numpy as np
from batches import BEGIN, END, PAD, UNK
from ctranslate2.specs import common_spec
from ctranslate2.specs.transformer_spec import TransformerSpec
from weights import EPS, POSITIONS, Floats, Weights, positions


def words(vocab: int) -> list[str]:
    """CTranslate2 takes words, not ids, so each id is written out as a word."""
    return [str(number) for number in range(vocab)]


def write_model(weights: Weights, folder: Path) -> None:
    """Write a float32 model; int8 is chosen when it is loaded (``compute_type``)."""
    size, arrays = weights.size, weights.arrays
    spec = TransformerSpec.from_config(
        size.layers, size.heads, pre_norm=False, activation=common_spec.Activation.RELU
    )
    vocabulary = words(size.vocab)
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.unk_token = vocabulary[UNK]
    spec.config.bos_token = spec.config.decoder_start_token = vocabulary[BEGIN]
    spec.config.eos_token = vocabulary[END]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = EPS
    spec.encoder.embeddings[0].weight = arrays["embedding"]
    spec.decoder.embeddings.weight = arrays["embedding"]
    spec.decoder.projection.weight = arrays["embedding"]
    for name, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        stack.position_encodings.encodings = positions(POSITIONS, size.d_model)
        for number, layer in enumerate(stack.layer):
            prefix = f"{name}.{number}"
            _fill_attention(layer.self_attention, arrays, f"{prefix}.self", fused=3)
            if name == "decoder":
                _fill_attention(layer.attention, arrays, f"{prefix}.cross", fused=2)
            _fill(layer.ffn.linear_0, arrays, f"{prefix}.feedforward.inner")
            _fill(layer.ffn.linear_1, arrays, f"{prefix}.feedforward.outer")
            _fill_norm(layer.ffn.layer_norm, arrays, f"{prefix}.feedforward.norm")
    spec.validate()
    spec.optimize(quantization="float32")
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def _fill_attention(spec: Any, arrays: dict[str, Floats], name: str, fused: int) -> None:
    """The last ``fused`` of query, key and value form one product; the others are separate."""
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    for number, part in enumerate(parts[: 3 - fused]):
        _fill(spec.linear[number], arrays, part)
    product = spec.linear[3 - fused]
    product.weight = np.concatenate([arrays[f"{part}.weight"] for part in parts[-fused:]])
    product.bias = np.concatenate([arrays[f"{part}.bias"] for part in parts[-fused:]])
    _fill(spec.linear[-1], arrays, f"{name}.output")
    _fill_norm(spec.layer_norm, arrays, f"{name}.norm")


def _fill(spec: Any, arrays: dict[str, Floats], name: str) -> None:
    spec.weight, spec.bias = arrays[f"{name}.weight"], arrays[f"{name}.bias"]


def _fill_norm(spec: Any, arrays: dict[str, Floats], name: str) -> None:
    spec.gamma, spec.beta = arrays[f"{name}.weight"], arrays[f"{name}.bias"]


NEVER_GENERATED = [[str(PAD)], [str(BEGIN)]]

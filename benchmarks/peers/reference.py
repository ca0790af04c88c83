"""The model of weights.py in NumPy and float64, written for readability: the oracle of check.py."""

from typing import Any

import numpy as np
import numpy.typing as npt
from batches import PAD, Ids
from weights import EPS, Weights, positions

Array = npt.NDArray[np.float64]


def logits(weights: Weights, source: Ids, decoder_input: Ids) -> Array:
    """Logits [sentences, target tokens, vocab] of source and decoder input, [sentences, tokens]."""
    model = _Model(weights)
    attended = (source != PAD)[:, None, None, :]  # [sentences, heads, queries, keys]
    memory = model.embed(source)
    for layer in (f"encoder.{i}" for i in range(weights.size.layers)):
        memory = model.attend(f"{layer}.self", memory, memory, attended)
        memory = model.feed_forward(f"{layer}.feedforward", memory)
    length = decoder_input.shape[1]
    earlier = np.tril(np.ones((1, 1, length, length), dtype=bool))
    state = model.embed(decoder_input)
    for layer in (f"decoder.{i}" for i in range(weights.size.layers)):
        state = model.attend(f"{layer}.self", state, state, earlier)
        state = model.attend(f"{layer}.cross", state, memory, attended)
        state = model.feed_forward(f"{layer}.feedforward", state)
    result: Array = state @ model.arrays["embedding"].T
    return result


def log_probabilities(scores: Array) -> Array:
    shifted = scores - scores.max(axis=-1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


class _Model:
    def __init__(self, weights: Weights) -> None:
        self.size = weights.size
        self.arrays = {name: array.astype(np.float64) for name, array in weights.arrays.items()}

    def embed(self, ids: Ids) -> Array:
        table = positions(ids.shape[1], self.size.d_model)
        result: Array = self.arrays["embedding"][ids] * np.sqrt(self.size.d_model) + table
        return result

    def linear(self, name: str, x: Array) -> Array:
        result: Array = x @ self.arrays[f"{name}.weight"].T + self.arrays[f"{name}.bias"]
        return result

    def norm(self, name: str, x: Array) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        normal = centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + EPS)
        result: Array = normal * self.arrays[f"{name}.weight"] + self.arrays[f"{name}.bias"]
        return result

    def attend(self, name: str, x: Array, memory: Array, mask: npt.NDArray[Any]) -> Array:
        heads = self.size.heads

        def split(y: Array) -> Array:  # [sentences, tokens, d] -> [sentences, heads, tokens, d/h]
            return y.reshape(*y.shape[:2], heads, -1).transpose(0, 2, 1, 3)

        query = split(self.linear(f"{name}.query", x))
        key = split(self.linear(f"{name}.key", memory))
        value = split(self.linear(f"{name}.value", memory))
        scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(query.shape[-1])
        scores = np.where(mask, scores, -np.inf)
        context = np.exp(log_probabilities(scores)) @ value
        merged = context.transpose(0, 2, 1, 3).reshape(x.shape)
        return self.norm(f"{name}.norm", x + self.linear(f"{name}.output", merged))

    def feed_forward(self, name: str, x: Array) -> Array:
        inner = np.maximum(self.linear(f"{name}.inner", x), 0)
        return self.norm(f"{name}.norm", x + self.linear(f"{name}.outer", inner))

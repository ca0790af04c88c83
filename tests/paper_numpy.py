"""Rectified Linear Attention in NumPy float64, written from the paper: the oracle of these tests.

Equations 1 to 5 of "Sparse Attention with Linear Units" (Zhang, Titov and Sennrich, 2021), the rows
of its Table 1, and the other activations of `relakit.attention`. One query at a time, one head at a
time: it is meant to be read next to the formulas. It knows neither torch nor relakit.

A masked key is removed: an activation only ever sees the scores of the keys that are left.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

TABLE_1: Mapping[str, Mapping[str, Any]] = {
    "softmax": {"activation": "softmax"},
    "sparsemax": {"activation": "sparsemax"},
    "entmax15": {"activation": "entmax15"},
    "relu": {"activation": "relu"},
    "relu-rms": {"activation": "relu", "norm": "rms"},
    "rela-i": {"activation": "relu", "norm": "rms"},
    "rela-g": {"activation": "relu", "norm": "rms", "gate": True},
    "rela-g-layernorm": {"activation": "relu", "norm": "layer", "gate": True},
    "rela-g-gelu": {"activation": "gelu", "norm": "rms", "gate": True},
    "rela-g-leaky": {"activation": "leaky_relu", "norm": "rms", "gate": True},
}
"""Rows 1 to 10. Rows 5 and 6 differ in how the gain starts, not in what they compute."""


# From the scores of one query to its weights. scores: [valid keys], at least one.


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def bisect(excess: Callable[[float], float], low: float, high: float) -> float:
    """Where the decreasing function `excess` crosses 0, to the last bit."""
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        if excess(middle) > 0:
            low = middle
        else:
            high = middle


def sparsemax_tau(scores: Array) -> float:
    """The tau for which max(0, s - tau) sums to 1."""
    top = float(scores.max())
    return bisect(lambda tau: np.maximum(0, scores - tau).sum() - 1, top - 1, top)


def sparsemax(scores: Array) -> Array:
    return np.maximum(0, scores - sparsemax_tau(scores))


def entmax15_tau(scores: Array) -> float:
    """The tau for which max(0, s / 2 - tau)^2 sums to 1."""
    top = float(scores.max()) / 2
    return bisect(lambda tau: (np.maximum(0, scores / 2 - tau) ** 2).sum() - 1, top - 1, top)


def entmax15(scores: Array) -> Array:
    return np.maximum(0, scores / 2 - entmax15_tau(scores)) ** 2


def relu(scores: Array, threshold: float, power: float, length_exponent: float) -> Array:
    weights = np.zeros(len(scores))
    for i, score in enumerate(scores):
        if score > threshold:
            weights[i] = (score - threshold) ** power
    return weights / len(scores) ** length_exponent


def gelu(scores: Array, threshold: float, length_exponent: float) -> Array:
    weights = [x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in scores - threshold]
    return np.array(weights) / len(scores) ** length_exponent


def leaky_relu(scores: Array, threshold: float, length_exponent: float) -> Array:
    weights = [x if x > 0 else 0.01 * x for x in scores - threshold]
    return np.array(weights) / len(scores) ** length_exponent


def sigmoid(x: Array) -> Array:
    return np.exp(-np.logaddexp(0, -x))


def softpick(scores: Array) -> Array:
    # relu(e^s - 1) / (sum |e^s - 1| + 1e-8); e^s - 1 is expm1(s), which is exact for small s.
    # Above and below are divided by e^m, so that a large s does not overflow.
    m = max(0.0, float(scores.max()))
    shifted = np.array(
        [math.exp(-m) * math.expm1(s) if s < 1 else math.exp(s - m) - math.exp(-m) for s in scores]
    )
    return np.maximum(0, shifted) / (np.abs(shifted).sum() + 1e-8 * math.exp(-m))


def activate(
    scores: Array,
    activation: str,
    threshold: float = 0.0,
    power: float = 1.0,
    length_exponent: float = 0.0,
) -> Array:
    """The weights of one query. scores: [valid keys]; there may be none."""
    if len(scores) == 0:
        return np.zeros(0)
    match activation:
        case "softmax":
            return softmax(scores)
        case "sparsemax":
            return sparsemax(scores)
        case "entmax15":
            return entmax15(scores)
        case "relu":
            return relu(scores, threshold, power, length_exponent)
        case "gelu":
            return gelu(scores, threshold, length_exponent)
        case "leaky_relu":
            return leaky_relu(scores, threshold, length_exponent)
        case "sigmoid":
            return sigmoid(scores - math.log(len(scores)))
        case "softpick":
            return softpick(scores)
    raise AssertionError(activation)


def kink_distance(scores: Array, activation: str, threshold: float = 0.0) -> float:
    """How far the nearest score is from where the activation has no derivative."""
    if len(scores) == 0:
        return math.inf
    match activation:
        case "relu" | "leaky_relu":
            kink = threshold
        case "softpick":
            kink = 0.0
        case "sparsemax":
            kink = sparsemax_tau(scores)
        case "entmax15":
            kink = 2 * entmax15_tau(scores)
        case _:
            return math.inf
    return float(np.abs(scores - kink).min())


# Attention (eq. 1 and 3).


def masked_scores(
    query: ArrayLike,
    key: ArrayLike,
    attn_mask: ArrayLike | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Array:
    """Scaled dot products plus bias, -inf where a key is masked.

    query: [batch, heads, queries, dim], key: [batch, key heads, keys, dim]; query head h belongs to
    key head h // (heads / key heads). attn_mask broadcasts to the result, [batch, heads, queries,
    keys]: True = attend, or a bias.
    """
    query, key = np.asarray(query, np.float64), np.asarray(key, np.float64)
    batch, heads, queries, dim = query.shape
    key_heads, keys = key.shape[1:3]
    if scale is None:
        scale = 1 / math.sqrt(dim)
    scores = np.zeros((batch, heads, queries, keys))
    for b in range(batch):
        for h in range(heads):
            scores[b, h] = scale * query[b, h] @ key[b, h // (heads // key_heads)].T
    if attn_mask is not None:
        mask = np.broadcast_to(np.asarray(attn_mask), scores.shape)
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        for i in range(queries):
            scores[..., i, i + 1 :] = -np.inf
    return scores


def attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    activation: str = "relu",
    threshold: ArrayLike = 0.0,
    power: float = 1.0,
    length_exponent: float = 0.0,
) -> tuple[Array, Array]:
    """Output [batch, heads, queries, value dim] and weights [batch, heads, queries, keys]."""
    scores = masked_scores(query, key, attn_mask, is_causal, scale)
    value = np.asarray(value, np.float64)
    batch, heads, queries, _ = scores.shape
    thresholds = np.broadcast_to(np.asarray(threshold, np.float64), (heads,))
    weights = np.zeros(scores.shape)
    output = np.zeros((batch, heads, queries, value.shape[-1]))
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                valid = scores[b, h, i] > -np.inf
                weights[b, h, i, valid] = activate(
                    scores[b, h, i, valid], activation, thresholds[h], power, length_exponent
                )
            output[b, h] = weights[b, h] @ value[b, h // (heads // value.shape[1])]
    return output, weights


# The norms (eq. 4 and 5), over the last dimension.


def rms_norm(z: Array, gain: Array, eps: float = 1e-8) -> Array:
    return z / np.sqrt((z**2).mean(-1, keepdims=True) + eps) * gain


def layer_norm(z: Array, gain: Array, bias: Array, eps: float = 1e-8) -> Array:
    return rms_norm(z - z.mean(-1, keepdims=True), gain, eps) + bias


def gated(z: Array, normed: Array, gate: Array) -> Array:
    return sigmoid(gate * z) * normed


# Multi-head attention (eq. 2), with the norm on the concatenated heads.


def concatenated_heads(
    parameters: Mapping[str, Array],
    heads: int,
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    key_padding_mask: Array | None = None,
    **activation: Any,
) -> tuple[Array, Array]:
    """[head 1, ..., head H], [batch, queries, dim], and the weights [batch, heads, queries, keys].

    Inputs are [batch, positions, dim]. As in torch.nn.MultiheadAttention, True in a boolean mask
    means "masked out"; attn_mask is [queries, keys], key_padding_mask [batch, keys].
    """
    w_q, w_k, w_v = np.split(parameters["in_proj_weight"], 3)
    b_q, b_k, b_v = np.split(parameters["in_proj_bias"], 3)
    projected = query @ w_q.T + b_q, key @ w_k.T + b_k, value @ w_v.T + b_v
    q, k, v = (np.stack(np.split(x, heads, axis=-1), axis=1) for x in projected)
    bias = np.zeros((q.shape[0], 1, q.shape[2], k.shape[2]))
    if attn_mask is not None:
        bias += np.where(attn_mask, -np.inf, 0) if attn_mask.dtype == bool else attn_mask
    if key_padding_mask is not None:
        bias += np.where(key_padding_mask, -np.inf, 0)[:, None, None, :]
    if "threshold" in parameters:
        activation["threshold"] = parameters["threshold"]
    output, weights = attention(q, k, v, bias, **activation)
    return np.concatenate([output[:, h] for h in range(heads)], axis=-1), weights


def normalise(
    parameters: Mapping[str, Array],
    z: Array,
    norm: str = "none",
    gate: bool = False,
    norm_eps: float = 1e-8,
) -> Array:
    normed = z
    if norm == "rms":
        normed = rms_norm(z, parameters["norm.weight"], norm_eps)
    elif norm == "layer":
        normed = layer_norm(z, parameters["norm.weight"], parameters["norm.bias"], norm_eps)
    return gated(z, normed, parameters["norm.gate"]) if gate else normed


def multihead(
    parameters: Mapping[str, Array],
    heads: int,
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    key_padding_mask: Array | None = None,
    *,
    norm: str = "none",
    gate: bool = False,
    norm_eps: float = 1e-8,
    **activation: Any,
) -> tuple[Array, Array]:
    """Output [batch, queries, dim] and weights; arguments as for `concatenated_heads`."""
    z, weights = concatenated_heads(
        parameters, heads, query, key, value, attn_mask, key_padding_mask, **activation
    )
    z = normalise(parameters, z, norm, gate, norm_eps)
    return z @ parameters["out_proj.weight"].T + parameters["out_proj.bias"], weights

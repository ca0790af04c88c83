"""How clearly a head points: at few keys for each query, and at different ones. No gold needed."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def head_clarity(weights: npt.NDArray[np.float32]) -> Floats:
    """The clarity of each head on one sentence, from 0 to 1: ``[layers, heads]``.

    The mutual information of query and key among the queries that attend to anything, as a share of
    its maximum, times the share of these queries. It is 1 where each query has a key to itself, and
    0 where all attend to the same keys (a sink, or everything), or to nothing.

    Args:
        weights: ``[layers, heads, queries, keys]``.

    Returns:
        NaN if there is only one query or one key, as there is nothing to tell apart.
    """
    queries, keys = weights.shape[2:]
    if min(queries, keys) < 2:
        return np.full(weights.shape[:2], np.nan)
    sizes = np.abs(weights.astype(np.float64))
    totals = sizes.sum(-1, keepdims=True)
    shares = np.divide(sizes, totals, out=np.zeros_like(sizes), where=totals > 0)
    active = (totals[..., 0] > 0).sum(-1)  # [layers, heads]
    mean = shares.sum(2) / np.maximum(active, 1)[..., None]
    row_entropy = _entropy(shares).sum(-1) / np.maximum(active, 1)
    information = np.maximum(_entropy(mean) - row_entropy, 0.0)
    clarity: Floats = information / np.log(min(queries, keys)) * active / queries
    return clarity


def _entropy(shares: Floats) -> Floats:
    """The entropy in nats, over the last axis."""
    logarithms = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    entropy: Floats = -(shares * logarithms).sum(-1)
    return entropy


def mean_clarity(of_sentences: Iterable[Floats]) -> list[list[float]] | None:
    """The mean of `head_clarity` over the sentences where it is known; None if there are none."""
    known = [clarity for clarity in of_sentences if not np.isnan(clarity).any()]
    if not known:
        return None
    mean: list[list[float]] = np.mean(known, axis=0).tolist()
    return mean


def clearest_head(clarity: list[list[float]]) -> tuple[int, int]:
    """Layer and head, from 0, of the largest value."""
    table = np.array(clarity)
    layer, head = np.unravel_index(int(table.argmax()), table.shape)
    return int(layer), int(head)

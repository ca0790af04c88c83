"""Which sentence pairs are computed together, and which wrong source a target gets."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

TokenPair: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Ids of source and target, without special tokens."""

BATCH_TOKENS: Final = 4096
"""Padded tokens, of the longer side, that are computed at once, unless told otherwise."""
WINDOW: Final = 1000
"""Pairs that are read before they are computed, so that batches have pairs of one length."""
WINDOW_TOKENS: Final = 1 << 16
"""Source tokens that end a window early: the encoder's output for all of them may be kept."""


def read_windows(pairs: Iterable[TokenPair], most: int) -> Iterator[list[TokenPair]]:
    """The pairs in lists of at most ``most``, each read when it is asked for."""
    window: list[TokenPair] = []
    tokens = 0
    for pair in pairs:
        window.append(pair)
        tokens += len(pair[0]) + 1
        if len(window) == most or tokens >= WINDOW_TOKENS:
            yield window
            window, tokens = [], 0
    if window:
        yield window


def plan_pair_batches(
    sizes: Sequence[tuple[int, int]], batch_tokens: int, matrix_entries: int
) -> list[list[int]]:
    """Indices of pairs to compute together, the longest first.

    A batch, filled up, has at most ``batch_tokens`` tokens on either side, and at most
    ``matrix_entries`` entries in matrices that are square over the longer side; but one pair at
    least.

    Args:
        sizes: tokens of source and target, special ones included.
        batch_tokens: see above.
        matrix_entries: see above.
    """
    batches: list[list[int]] = []
    longest = 0
    for index in sorted(range(len(sizes)), key=lambda i: (-sizes[i][1], -sizes[i][0])):
        wider = max(longest, *sizes[index])
        count = len(batches[-1]) + 1 if batches else 0
        too_large = count * wider > batch_tokens or count * wider**2 > matrix_entries
        if not batches or too_large:
            batches.append([])
            wider = max(sizes[index])
        longest = wider
        batches[-1].append(index)
    return batches


def wrong_sources(count: int, seed: Sequence[int]) -> list[int]:
    """For each of ``count`` pairs, at least two, another one: no pair is given to itself.

    Each gets the pair that follows it in a random circular order.
    """
    if count < 2:
        raise ValueError(f"at least 2 pairs are needed to exchange sources, got {count}")
    circle = np.random.default_rng(seed).permutation(count)
    others = np.empty(count, dtype=np.int64)
    others[circle] = np.roll(circle, -1)
    found: list[int] = others.tolist()
    return found

"""Whether the numbers of a pair depend on that pair alone, bit for bit."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from relakit.analysis.pair_batches import TokenPair
from relakit.analysis.settings import BATCH_TOKENS
from relakit.data.tokenizer import END
from relakit.model import ModelConfig

Compute: TypeAlias = Callable[[Sequence[TokenPair], int], Mapping[int, Sequence[npt.NDArray[Any]]]]
"""Maps pairs, and how many padded tokens to compute at once, to the numbers of each pair."""
_CHECKED: Final = ((5, 7), (9, 12), (14, 14), (3, 10), (20, 30), (17, 27), (23, 25), (40, 33))
"""How many source and target tokens the made-up pairs have."""


def is_same_alone(config: ModelConfig, compute: Compute) -> bool:
    """Whether made-up pairs give bit-identical results alone and in a batch on this processor.

    ``config`` is the configuration of the model that computes.
    """
    draw = np.random.default_rng(0)
    entries = config.source_entries, config.vocabulary
    pairs: list[TokenPair] = [
        (
            draw.integers(END + 1, max(END + 2, entries[0]), sizes[0]).tolist(),
            draw.integers(END + 1, max(END + 2, entries[1]), sizes[1]).tolist(),
        )
        for sizes in _CHECKED
    ]
    together = compute(pairs, BATCH_TOKENS)
    alone = compute(pairs, 1)
    return all(
        np.array_equal(one, other)
        for index, found in alone.items()
        for one, other in zip(found, together[index], strict=True)
    )

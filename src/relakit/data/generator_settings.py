"""Settings of the corpus generator and their defaults, without loading its word lists."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from relakit.known_names import known_name

Split: TypeAlias = Literal["train", "valid", "test"]
SPLITS: Final[tuple[Split, ...]] = get_args(Split)

SEED: Final = 1
SIZES: Final[Mapping[Split, int]] = MappingProxyType({"train": 30_000, "valid": 500, "test": 500})
"""Sentence pairs in each split."""


def known_split(name: str) -> Split:
    """The name, as a split; ValueError if there is no such split."""
    return known_name("split", name, SPLITS)

"""Settings of the corpus generator and their defaults, without loading its word lists."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

Split: TypeAlias = Literal["train", "valid", "test"]
SPLITS: Final[tuple[Split, ...]] = get_args(Split)

NoiseKind: TypeAlias = Literal["shuffled", "inserted", "truncated", "language", "copied"]
"""What can be done to a pair: take another pair's target; put a phrase into the target; cut off its
end; give it a target in a third language; copy the source."""
NOISE_KINDS: Final[tuple[NoiseKind, ...]] = get_args(NoiseKind)

SEED: Final = 1
SIZES: Final[Mapping[Split, int]] = MappingProxyType({"train": 30_000, "valid": 500, "test": 500})
"""Sentence pairs of each split."""


def known_split(name: str) -> Split:
    """The name, as a split; ValueError if there is none."""
    if name not in SPLITS:
        raise ValueError(f"unknown split {name!r}; choose one of {', '.join(SPLITS)}")
    return name


def known_noise(name: str) -> NoiseKind:
    """The name, as a kind of noise; ValueError if there is none."""
    if name not in NOISE_KINDS:
        raise ValueError(f"unknown noise {name!r}; choose from {', '.join(NOISE_KINDS)}")
    return name


def check_shares(noise: Mapping[NoiseKind, float]) -> None:
    """Raise ValueError for shares of noisy pairs that cannot be planted."""
    for kind, share in noise.items():
        known_noise(kind)
        if not 0 <= share <= 1:
            raise ValueError(f"the share of {kind} pairs must be from 0 to 1, got {share}")
    total = sum(noise.values())
    if total > 1 + 1e-9:  # 0.7 + 0.2 + 0.1 is a little more than 1
        parts = " + ".join(str(share) for share in noise.values())
        raise ValueError(f"the shares of noisy pairs must not exceed 1 together, got {parts}")

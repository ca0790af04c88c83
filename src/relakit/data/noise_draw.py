"""Decides which pairs become noisy, and how: kinds of noise, their shares, and the draw."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Generic, Literal, TypeAlias, TypeVar, get_args

from relakit.known_names import known_name

NoiseKind: TypeAlias = Literal["shuffled", "inserted", "truncated", "language", "copied"]
"""What can be done to a pair: take another pair's target; insert a phrase into the target; cut off
its end; give it a target in the wrong language; copy the source."""
NOISE_KINDS: Final[tuple[NoiseKind, ...]] = get_args(NoiseKind)
CLEAN: Final = "clean"
"""The label of a pair without noise."""

# How many of the last clean pairs are kept for noisy pairs to take words from.
_DONORS: Final = 64

Pair = TypeVar("Pair")


@dataclass(frozen=True)
class Donor(Generic[Pair]):
    """An earlier pair that stayed clean."""

    line: int
    """From 1"""
    pair: Pair


Planter: TypeAlias = Callable[[Pair, Random, Sequence[Donor[Pair]]], Pair | None]
"""Makes a pair noisy in one way, with random numbers that it draws and words from the donors.
Returns None if that is not possible, such as for a target of one word, which cannot be cut."""


def known_noise(name: str) -> NoiseKind:
    """The name, as a kind of noise; ValueError if there is no such kind."""
    return known_name("noise", name, NOISE_KINDS)


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


def draw_noise(
    pairs: Iterable[Pair],
    planters: Mapping[NoiseKind, Planter[Pair]],
    *,
    shares: Mapping[NoiseKind, float],
    seed: int,
) -> Iterator[Pair]:
    """The pairs in order, with about the given share of them made noisy in each way.

    What happens to a pair depends on the seed, its line and the pairs before it; memory does not
    grow with their number. If the kind that was drawn cannot be planted, a different one is tried;
    the pair stays clean if none can be.

    Raises:
        ValueError: the shares cannot be planted.
    """
    check_shares(shares)
    return _planted(pairs, planters, {kind: share for kind, share in shares.items() if share}, seed)


def _planted(
    pairs: Iterable[Pair],
    planters: Mapping[NoiseKind, Planter[Pair]],
    shares: Mapping[NoiseKind, float],
    seed: int,
) -> Iterator[Pair]:
    donors: deque[Donor[Pair]] = deque(maxlen=_DONORS)
    total = sum(shares.values())
    for line, pair in enumerate(pairs, start=1):
        # Seeded for every pair: with larger shares, pairs that were noisy before stay noisy.
        random = Random(f"relakit noise {seed} {line}")
        is_noisy, kind_draw = random.random(), random.random()
        noisy: Pair | None = None
        left = dict(shares) if is_noisy < total else {}
        while left and noisy is None:
            kind = _choose(left, kind_draw)
            noisy = planters[kind](pair, random, donors)
            del left[kind]
        if noisy is None:
            donors.append(Donor(line, pair))
        yield pair if noisy is None else noisy


def _choose(shares: Mapping[NoiseKind, float], draw: float) -> NoiseKind:
    """A kind, with a probability proportional to its share; ``draw`` is from 0 to 1."""
    kinds = list(shares)
    rest = draw * sum(shares.values())
    for kind in kinds:
        rest -= shares[kind]
        if rest < 0:
            return kind
    return kinds[-1]  # rounding left a little of the rest


def draw_below(count: int, random: Random) -> int:
    """A number from 0 to ``count`` - 1, the same in every version of Python."""
    return int(random.random() * count)


def draw_kept_words(count: int, random: Random) -> int:
    """How many words a truncated target keeps: a fifth to seven tenths of them, at least one."""
    return max(1, int(count * (0.2 + 0.5 * random.random())))

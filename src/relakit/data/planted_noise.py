"""Noise planted in clean sentence pairs, as text, each labelled with its kind.

Words are what spaces separate. `relakit.data.generated` plants noise in its own pairs, whose links
and tags it keeps right.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from types import MappingProxyType
from typing import Final, TypeAlias

from relakit.data.labelled_pairs import LabelledPair
from relakit.data.noise_draw import (
    CLEAN,
    NOISE_KINDS,
    Donor,
    NoiseKind,
    Planter,
    draw_below,
    draw_kept_words,
    draw_noise,
)

SHARES: Final[Mapping[NoiseKind, float]] = MappingProxyType(dict.fromkeys(NOISE_KINDS, 0.1))
"""Of all pairs: half of them stay clean."""
INSERTED_WORDS: Final = (3, 8)
"""Fewest and most words of an inserted phrase."""

_Donors: TypeAlias = Sequence[Donor[LabelledPair]]


def plant_text_noise(
    pairs: Iterable[tuple[str, str]],
    *,
    seed: int,
    shares: Mapping[NoiseKind, float] = SHARES,
    foreign: Sequence[str] = (),
) -> Iterator[LabelledPair]:
    """The pairs in their order, about the given share of them made noisy in each way, and labelled.

    The label is ``clean`` or the kind of noise. Sources stay as they are. The target becomes

    - ``shuffled``: the target of another pair;
    - ``inserted``: itself, with some words of another pair's target put in somewhere;
    - ``truncated``: its beginning, a fifth to seven tenths of its words;
    - ``language``: a line of ``foreign``, or without these the source of another pair, which is
      in a wrong language too;
    - ``copied``: its own source.

    Other pairs are among the last that stayed clean. Where a kind cannot be planted (no such pair
    yet, or a target of one word that cannot be cut) another one is. What happens to a pair depends
    on the seed, its line and the pairs before it, so the first pairs of a corpus become the same
    however many follow.

    Args:
        pairs: source and target; they should be clean.
        seed: other seeds choose other pairs.
        shares: of all pairs, at most 1 together.
        foreign: sentences in a third language.

    Raises:
        ValueError: shares that cannot be planted.
    """
    lines = [line for line in foreign if line.strip()]

    def language(pair: LabelledPair, random: Random, donors: _Donors) -> LabelledPair | None:
        others = lines or [donor.source for donor in _others(pair, donors)]
        return _with_target(pair, "language", _drawn(others, random))

    planters: dict[NoiseKind, Planter[LabelledPair]] = {
        "shuffled": _shuffled,
        "inserted": _inserted,
        "truncated": _truncated,
        "language": language,
        "copied": _copied,
    }
    clean = (LabelledPair(source, target, CLEAN) for source, target in pairs)
    return draw_noise(clean, planters, shares=shares, seed=seed)


def _shuffled(pair: LabelledPair, random: Random, donors: _Donors) -> LabelledPair | None:
    others = [other.target for other in _others(pair, donors)]
    return _with_target(pair, "shuffled", _drawn(others, random))


def _inserted(pair: LabelledPair, random: Random, donors: _Donors) -> LabelledPair | None:
    fewest, most = INSERTED_WORDS
    phrases = [other.target.split() for other in _others(pair, donors)]
    phrases = [words for words in phrases if len(words) >= fewest]
    own = pair.target.split()
    if not phrases or not own:
        return None
    words = phrases[draw_below(len(phrases), random)]
    size = fewest + draw_below(min(most, len(words)) - fewest + 1, random)
    start = draw_below(len(words) - size + 1, random)
    place = draw_below(len(own) + 1, random)
    longer = [*own[:place], *words[start : start + size], *own[place:]]
    return _with_target(pair, "inserted", " ".join(longer))


def _truncated(pair: LabelledPair, random: Random, donors: _Donors) -> LabelledPair | None:
    words = pair.target.split()
    if len(words) < 2:
        return None
    return _with_target(pair, "truncated", " ".join(words[: draw_kept_words(len(words), random)]))


def _copied(pair: LabelledPair, random: Random, donors: _Donors) -> LabelledPair | None:
    return _with_target(pair, "copied", pair.source)


def _others(pair: LabelledPair, donors: _Donors) -> list[LabelledPair]:
    """Pairs whose source and target are others, and are not empty."""
    pairs = (donor.pair for donor in donors)
    return [
        other
        for other in pairs
        if other.source.strip() and other.source != pair.source
        if other.target.strip() and other.target != pair.target
    ]


def _drawn(texts: Sequence[str], random: Random) -> str | None:
    return texts[draw_below(len(texts), random)] if texts else None


def _with_target(pair: LabelledPair, kind: NoiseKind, target: str | None) -> LabelledPair | None:
    """None if there is no target, or if it is the right one after all, as in a list of names."""
    if target is None or target == pair.target:
        return None
    return replace(pair, target=target, label=kind)

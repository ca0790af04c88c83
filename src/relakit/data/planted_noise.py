"""Plants noise in the text of clean sentence pairs, and labels each with its kind.

Words are separated by spaces. `relakit.data.generated` plants noise in its own pairs, and keeps
their links and tags correct.
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
"""Shares of all pairs: half of them stay clean."""
INSERTED_WORDS: Final = (3, 8)
"""Fewest and most words in an inserted phrase."""

_Donors: TypeAlias = Sequence[Donor[LabelledPair]]


def plant_text_noise(
    pairs: Iterable[tuple[str, str]],
    *,
    seed: int,
    shares: Mapping[NoiseKind, float] = SHARES,
    foreign: Sequence[str] = (),
) -> Iterator[LabelledPair]:
    """The pairs in order, labelled, with about the given share of them made noisy in each way.

    The label is ``clean`` or the kind of noise. Sources stay unchanged. The target becomes

    - ``shuffled``: the target of another pair;
    - ``inserted``: itself, with some words of another pair's target inserted somewhere;
    - ``truncated``: its beginning, a fifth to seven tenths of its words;
    - ``language``: a line of ``foreign``; if there are none, the source of another pair, which is
      also in the wrong language;
    - ``copied``: its own source.

    The other pairs are among the last that stayed clean. If a kind cannot be planted (no such pair
    yet, or a target of one word that cannot be cut), a different one is. What happens to a pair
    depends on the seed, its line and the pairs before it, so the first pairs of a corpus come out
    the same however many follow.

    Args:
        pairs: source and target; they should be clean.
        seed: different seeds choose different pairs.
        shares: the share of all pairs for each kind, at most 1 in total.
        foreign: sentences in a third language.

    Raises:
        ValueError: the shares cannot be planted.
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
    """Donor pairs whose source and target both differ from this pair's and are not empty."""
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
    """The pair with this target; None if there is none, or it is right after all, like a name."""
    if target is None or target == pair.target:
        return None
    return replace(pair, target=target, label=kind)

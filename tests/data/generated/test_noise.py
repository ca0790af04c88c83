"""Noise in generated pairs: how much of each kind, what it does, and what the labels say."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest

from relakit.data.generated import (
    NOISE_KINDS,
    GeneratedPair,
    NoiseKind,
    generate_pairs,
    plant_noise,
)

# One worker for all of them: the pairs are generated once.
pytestmark = pytest.mark.xdist_group("generated")

PAIRS = 6000
SHARES: dict[NoiseKind, float] = dict.fromkeys(NOISE_KINDS, 0.08)


@pytest.fixture(scope="module")
def clean() -> list[GeneratedPair]:
    return list(generate_pairs(PAIRS, seed=11))


@pytest.fixture(scope="module")
def noisy(clean: list[GeneratedPair]) -> list[GeneratedPair]:
    return list(plant_noise(clean, shares=SHARES, seed=1))


def kind_of(pair: GeneratedPair) -> NoiseKind | None:
    return None if pair.noise is None else pair.noise.kind


def unlinked_targets(pair: GeneratedPair) -> int:
    return len(pair.target) - len({right for _, right in pair.links})


def test_equal_shares(noisy: list[GeneratedPair]) -> None:
    counts = Counter(map(kind_of, noisy))
    assert counts[None] == pytest.approx(3600, abs=150)
    for kind in NOISE_KINDS:
        assert counts[kind] == pytest.approx(480, abs=90)


def test_unequal_shares(clean: list[GeneratedPair]) -> None:
    shares: dict[NoiseKind, float] = {"copied": 0.3, "truncated": 0.1, "shuffled": 0.0}
    counts = Counter(kind_of(pair) for pair in plant_noise(clean, shares=shares, seed=1))
    assert counts["copied"] == pytest.approx(1800, abs=150)
    assert counts["truncated"] == pytest.approx(600, abs=90)
    assert set(counts) == {None, "copied", "truncated"}


def test_more_noise_keeps_what_less_noise_had(
    clean: list[GeneratedPair], noisy: list[GeneratedPair]
) -> None:
    half = plant_noise(clean, shares=dict.fromkeys(NOISE_KINDS, 0.04), seed=1)
    for less, more in zip(half, noisy, strict=True):
        assert kind_of(less) in (None, kind_of(more))


def test_order_and_sources_are_kept(clean: list[GeneratedPair], noisy: list[GeneratedPair]) -> None:
    assert len(noisy) == len(clean)
    for before, after in zip(clean, noisy, strict=True):
        assert after.source == before.source
        assert after.source_tags == before.source_tags
        assert (after == before) == (after.noise is None)
        assert len(after.target) == len(after.target_tags) > 0


def test_what_each_kind_does(clean: list[GeneratedPair], noisy: list[GeneratedPair]) -> None:
    german = {word for pair in clean for word in pair.target}
    for before, after in zip(clean, noisy, strict=True):
        size = len(after.target)
        if after.noise is None:
            continue
        kind, what = after.noise
        if kind == "copied":
            assert (after.target, after.target_tags) == (before.source, before.source_tags)
            assert after.links == ()
            assert what == "target is the source"
        elif kind == "shuffled":
            assert after.target != before.target
            assert what.startswith("target of line ")
            donor = int(what.removeprefix("target of line ")) - 1
            assert noisy[donor].noise is None
            assert after.target == clean[donor].target
            assert after.target_tags == clean[donor].target_tags
            assert after.links == ()
        elif kind == "language":
            assert len(set(after.target) - german) >= 2
            assert set(after.target_tags) == {"X", "PUNCT"}
            assert after.links == ()
            assert what == "target is French"
        elif kind == "truncated":
            assert size < len(before.target)
            assert after.target == before.target[:size]
            assert after.links == tuple(link for link in before.links if link[1] < size)
            assert what == f"kept {size} of {len(before.target)} words"
        else:
            assert kind == "inserted"
            places, _, phrase = what.removeprefix("words ").partition(": ")
            first, last = map(int, places.split("-"))
            assert after.target[first : last + 1] == tuple(phrase.split())
            assert (*after.target[:first], *after.target[last + 1 :]) == before.target


def test_links_follow_the_words_around_an_insertion(
    clean: list[GeneratedPair], noisy: list[GeneratedPair]
) -> None:
    def linked_words(pair: GeneratedPair) -> list[tuple[int, str, str]]:
        return [(left, pair.target[right], pair.target_tags[right]) for left, right in pair.links]

    checked = 0
    for before, after in zip(clean, noisy, strict=True):
        if kind_of(after) == "inserted":
            checked += 1
            assert linked_words(after) == linked_words(before)
            inserted = len(after.target) - len(before.target)
            assert unlinked_targets(after) == unlinked_targets(before) + inserted
    assert checked > 300


def test_deterministic_by_seed(clean: list[GeneratedPair], noisy: list[GeneratedPair]) -> None:
    assert list(plant_noise(clean, shares=SHARES, seed=1)) == noisy
    assert list(plant_noise(clean, shares=SHARES, seed=2)) != noisy


def test_streams() -> None:
    read = 0

    def endless() -> Iterator[GeneratedPair]:
        nonlocal read
        for pair in generate_pairs(10**9):
            read += 1
            yield pair

    assert len(list(islice(plant_noise(endless(), shares=SHARES, seed=1), 100))) == 100
    assert read == 100


def test_extremes(clean: list[GeneratedPair]) -> None:
    assert list(plant_noise(clean, shares={}, seed=1)) == clean
    assert list(plant_noise(clean, shares={"copied": 0.0}, seed=1)) == clean
    everything = plant_noise(clean[:500], shares=dict.fromkeys(NOISE_KINDS, 0.2), seed=1)
    # Without a clean pair before it none can be shuffled, so other kinds take its place.
    assert {kind_of(pair) for pair in everything} == {*NOISE_KINDS} - {"shuffled"}
    assert list(plant_noise(clean[:1], shares={"shuffled": 1.0}, seed=1)) == clean[:1]
    thirds: dict[NoiseKind, float] = {"copied": 0.7, "truncated": 0.2, "language": 0.1}
    assert all(pair.noise for pair in plant_noise(clean[:500], shares=thirds, seed=1))


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"copied": 1.5}, r"the share of copied pairs must be from 0 to 1, got 1\.5"),
        ({"copied": -0.1}, r"the share of copied pairs must be from 0 to 1, got -0\.1"),
        ({"copied": float("nan")}, "from 0 to 1, got nan"),
        ({"copied": 0.6, "language": 0.5}, r"must not exceed 1 together, got 0\.6 \+ 0\.5"),
        ({"typos": 0.5}, "unknown noise 'typos'; choose one of shuffled, inserted, truncated, "),
    ],
)
def test_wrong_shares(
    clean: list[GeneratedPair], shares: dict[NoiseKind, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plant_noise(clean, shares=shares, seed=1)

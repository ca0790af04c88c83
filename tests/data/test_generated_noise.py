from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest

from relakit.data.generated import NOISE_KINDS, GeneratedPair, generate_pairs, plant_noise


@pytest.fixture(scope="module")
def clean() -> list[GeneratedPair]:
    return list(generate_pairs(6000, seed=11))


@pytest.fixture(scope="module")
def noisy(clean: list[GeneratedPair]) -> list[GeneratedPair]:
    return list(plant_noise(clean, share=0.4, seed=1))


def test_share_and_kinds(noisy: list[GeneratedPair]) -> None:
    counts = Counter(pair.noise for pair in noisy)
    assert counts[None] == pytest.approx(3600, abs=150)
    for kind in NOISE_KINDS:
        assert counts[kind] == pytest.approx(480, abs=90)


def test_order_and_sources_are_kept(clean: list[GeneratedPair], noisy: list[GeneratedPair]) -> None:
    assert len(noisy) == len(clean)
    for before, after in zip(clean, noisy, strict=True):
        assert after.source == before.source
        assert after.source_tags == before.source_tags
        assert (after == before) == (after.noise is None)
        assert len(after.target) == len(after.target_tags) > 0


def test_what_each_kind_does(clean: list[GeneratedPair], noisy: list[GeneratedPair]) -> None:
    targets = {pair.target for pair in clean}
    german = {word for pair in clean for word in pair.target}
    for before, after in zip(clean, noisy, strict=True):
        size = len(after.target)
        if after.noise == "copied":
            assert (after.target, after.target_tags) == (before.source, before.source_tags)
            assert after.links == ()
        elif after.noise == "shuffled":
            assert after.target != before.target
            assert after.target in targets
            assert after.links == ()
        elif after.noise == "language":
            assert len(set(after.target) - german) >= 2
            assert set(after.target_tags) == {"X", "PUNCT"}
            assert after.links == ()
        elif after.noise == "truncated":
            assert size < len(before.target)
            assert after.target == before.target[:size]
            assert after.links == tuple(link for link in before.links if link[1] < size)
        elif after.noise == "inserted":
            assert size > len(before.target)


def test_links_follow_the_words_around_an_insertion(
    clean: list[GeneratedPair], noisy: list[GeneratedPair]
) -> None:
    def linked_words(pair: GeneratedPair) -> list[tuple[int, str, str]]:
        return [(left, pair.target[right], pair.target_tags[right]) for left, right in pair.links]

    checked = 0
    for before, after in zip(clean, noisy, strict=True):
        if after.noise == "inserted":
            checked += 1
            assert linked_words(after) == linked_words(before)
            inserted = len(after.target) - len(before.target)
            assert len(after.unaligned_target) == len(before.unaligned_target) + inserted
    assert checked > 300


def test_deterministic_by_seed(clean: list[GeneratedPair], noisy: list[GeneratedPair]) -> None:
    assert list(plant_noise(clean, share=0.4, seed=1)) == noisy
    assert list(plant_noise(clean, share=0.4, seed=2)) != noisy


def test_streams() -> None:
    read = 0

    def endless() -> Iterator[GeneratedPair]:
        nonlocal read
        for pair in generate_pairs(10**9):
            read += 1
            yield pair

    assert len(list(islice(plant_noise(endless(), share=0.5, seed=1), 100))) == 100
    assert read == 100


def test_extremes(clean: list[GeneratedPair]) -> None:
    assert list(plant_noise(clean, share=0, seed=1)) == clean
    everything = list(plant_noise(clean[:500], share=1, seed=1))
    # With no clean pair before it none can be shuffled, so other kinds take its place.
    assert {pair.noise for pair in everything} == {*NOISE_KINDS} - {"shuffled"}
    only = list(plant_noise(clean[:500], share=0.5, seed=1, kinds=["truncated"]))
    assert {pair.noise for pair in only} == {None, "truncated"}


def test_wrong_arguments(clean: list[GeneratedPair]) -> None:
    with pytest.raises(ValueError, match=r"share must be from 0 to 1, got 1\.5"):
        plant_noise(clean, share=1.5, seed=1)
    with pytest.raises(ValueError, match="got 'typos'"):
        plant_noise(clean, share=0.5, seed=1, kinds=["typos"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="got none"):
        plant_noise(clean, share=0.5, seed=1, kinds=[])

"""Noise planted in text: how much of each kind, what it does, and what it depends on."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relakit.data.labelled_pairs import LabelledPair
from relakit.data.noise_draw import NOISE_KINDS, NoiseKind
from relakit.data.planted_noise import INSERTED_WORDS, SHARES, plant_text_noise

Pair = tuple[str, str]


def unlike_pairs(count: int) -> list[Pair]:
    """Every word occurs once in the corpus, so it is known where a target's words come from."""
    random = Random(1)

    def sentence(line: int, side: str) -> str:
        return " ".join(f"{side}{line}-{word}" for word in range(random.randint(1, 12)))

    return [(sentence(line, "s"), sentence(line, "t")) for line in range(count)]


def lines_of(text: str) -> set[str]:
    """Side and line of each word."""
    return {word.partition("-")[0] for word in text.split()}


@pytest.fixture(scope="module")
def clean() -> list[Pair]:
    return unlike_pairs(4000)


@pytest.fixture(scope="module")
def noisy(clean: list[Pair]) -> list[LabelledPair]:
    return list(plant_text_noise(clean, seed=1))


def test_shares(noisy: list[LabelledPair]) -> None:
    counts = Counter(pair.label for pair in noisy)
    assert set(counts) == {"clean", *NOISE_KINDS}
    assert counts["clean"] == pytest.approx(2000, abs=130)
    for kind in NOISE_KINDS:
        assert counts[kind] == pytest.approx(4000 * SHARES[kind], abs=90)


def test_what_each_kind_does(clean: list[Pair], noisy: list[LabelledPair]) -> None:
    stayed_clean = {line for line, pair in enumerate(noisy) if pair.label == "clean"}
    for line, ((source, target), pair) in enumerate(zip(clean, noisy, strict=True)):
        assert pair.source == source
        words, own = pair.target.split(), target.split()
        others = lines_of(pair.target) - {f"t{line}"}
        if pair.label == "clean":
            assert pair.target == target
        elif pair.label == "copied":
            assert pair.target == source
        elif pair.label == "truncated":
            assert 0 < len(words) <= 0.7 * len(own) or len(words) == 1
            assert len(words) < len(own)
            assert words == own[: len(words)]
        else:
            (other,) = others
            side, donor = other[0], int(other[1:])
            assert donor in stayed_clean
            assert donor < line
            if pair.label == "inserted":
                added = [word for word in words if word not in own]
                assert [word for word in words if word in own] == own
                assert INSERTED_WORDS[0] <= len(added) <= INSERTED_WORDS[1]
                assert " ".join(added) in pair.target
                assert " ".join(added) in clean[donor][1]
            else:
                assert pair.target == clean[donor]["st".index(side)]
                assert side == {"shuffled": "t", "language": "s"}[pair.label]


def test_phrases_of_all_sizes_at_all_places(clean: list[Pair], noisy: list[LabelledPair]) -> None:
    sizes, at_start, at_end = set(), 0, 0
    for (_, target), pair in zip(clean, noisy, strict=True):
        if pair.label == "inserted":
            sizes.add(len(pair.target.split()) - len(target.split()))
            at_start += pair.target.endswith(f" {target}")
            at_end += pair.target.startswith(f"{target} ")
    assert sizes == set(range(INSERTED_WORDS[0], INSERTED_WORDS[1] + 1))
    assert at_start
    assert at_end


def test_a_third_language(clean: list[Pair]) -> None:
    foreign = ["une phrase", "", "  ", "une autre"]
    shares: dict[NoiseKind, float] = {"language": 0.5}
    pairs = plant_text_noise(clean[:300], seed=1, shares=shares, foreign=foreign)
    targets = Counter(pair.target for pair in pairs if pair.label == "language")
    assert set(targets) == {"une phrase", "une autre"}
    assert sum(targets.values()) == pytest.approx(150, abs=40)


def test_deterministic_by_seed(clean: list[Pair], noisy: list[LabelledPair]) -> None:
    assert list(plant_text_noise(iter(clean), seed=1)) == noisy
    assert list(plant_text_noise(clean, seed=2)) != noisy


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 200))
def test_what_follows_has_no_influence(count: int) -> None:
    pairs = unlike_pairs(200)
    everything = list(plant_text_noise(pairs, seed=3))
    assert list(plant_text_noise(pairs[:count], seed=3)) == everything[:count]


def test_streams() -> None:
    read = 0

    def endless() -> Iterator[Pair]:
        nonlocal read
        while True:
            read += 1
            yield f"source {read}", f"target {read}"

    assert len(list(islice(plant_text_noise(endless(), seed=1), 100))) == 100
    assert read == 100


def test_what_cannot_be_planted() -> None:
    def labels(pairs: list[Pair], kind: NoiseKind) -> set[str]:
        return {pair.label for pair in plant_text_noise(pairs, seed=1, shares={kind: 1.0})}

    assert labels([("a", "b")] * 20, "truncated") == {"clean"}, "one word cannot be cut"
    assert labels([("a", "a")] * 20, "copied") == {"clean"}, "a copy is right here"
    assert labels([("a", "b c d")] * 20, "shuffled") == {"clean"}, "there is no other target"
    assert labels([("a", "")] * 20, "inserted") == {"clean"}
    assert labels([(f"a{n}", f"b{n} c") for n in range(20)], "inserted") == {"clean"}, "too short"
    one_word = [(f"a{n}", f"b{n}") for n in range(200)]
    shares: dict[NoiseKind, float] = {"truncated": 0.5, "copied": 0.5}
    instead = plant_text_noise(one_word, seed=1, shares=shares)
    assert {pair.label for pair in instead} == {"copied"}


def test_wrong_shares() -> None:
    with pytest.raises(ValueError, match=r"must not exceed 1 together, got 0\.6 \+ 0\.5"):
        plant_text_noise([], seed=1, shares={"copied": 0.6, "language": 0.5})

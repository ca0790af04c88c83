"""Guessing languages by character n-grams."""

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest

from relakit.data.generated import generate_pairs
from relakit.data.languages import (
    LANGUAGES_FILE,
    MOST_NGRAMS,
    MOST_SENTENCES,
    LanguageModel,
    LanguagePair,
    _some,
)

PAIRS = [(pair.source_text, pair.target_text) for pair in generate_pairs(600)]


@pytest.fixture(scope="module")
def languages() -> LanguagePair:
    return LanguagePair.learn(*zip(*PAIRS[:500], strict=True))


def test_sides_that_are_in_their_language(languages: LanguagePair) -> None:
    found = [odds for pair in PAIRS[500:] for odds in languages.log_odds(*pair)]
    assert min(found) > 0


def test_exchanged_sides(languages: LanguagePair) -> None:
    found = [odds for source, target in PAIRS[500:] for odds in languages.log_odds(target, source)]
    assert max(found) < 0


@pytest.mark.parametrize(
    "text",
    [
        "Les enfants jouaient dans le jardin pendant que nous préparions le repas",
        "Старая собака спит под деревом",
        "xq zzkj wqpf vvbn",
        "0123 4567 89",
    ],
)
def test_text_in_neither(languages: LanguagePair, text: str) -> None:
    assert max(languages.log_odds(text, text)) < 0


def test_blank_text(languages: LanguagePair) -> None:
    assert languages.log_odds("", " \t") == (0.0, 0.0)


def test_length_hardly_matters(languages: LanguagePair) -> None:
    source, target = PAIRS[500]
    once, often = (
        languages.log_odds(source, target),
        languages.log_odds(" ".join([source] * 5), " ".join([target] * 5)),
    )
    assert often == pytest.approx(once, rel=0.15)


def test_endless_text(languages: LanguagePair) -> None:
    assert languages.log_odds("a dog " * 100_000, "x")[0] == pytest.approx(
        languages.log_odds("a dog " * 1000, "x")[0]
    )


def test_probabilities_are_a_distribution() -> None:
    """Over the characters that occur and all others, which share what is left."""
    model = LanguageModel.learn(["abab abba", "cab"])
    seen = "abc "
    for before in ("", "a", "ab", "bab", "zzz", "zab"):
        known = sum(model.probability(before + character) for character in seen)
        unseen = model.probability(before + "\u3042")
        assert known + ((1 << 16) - len(seen)) * unseen == pytest.approx(1.0)


def test_frequent_characters_are_likelier() -> None:
    model = LanguageModel.learn(["aab aab aab"])
    assert model.probability("aab") > model.probability("aaa") > model.probability("aaq") > 0
    assert model.letter_probability("a") == pytest.approx(6 / 13)


def test_there_must_be_text() -> None:
    with pytest.raises(ValueError, match="no text to learn"):
        LanguageModel.learn(["", "  "])


def test_long_texts_are_sampled_evenly() -> None:
    count = 5 * MOST_SENTENCES
    some = [int(text) for text in _some(map(str, range(count)))]
    assert MOST_SENTENCES / 2 <= len(some) <= MOST_SENTENCES
    assert {later - earlier for earlier, later in pairwise(some)} == {8}
    assert some[0] == 0
    assert some[-1] >= count - 8


def test_only_the_frequent_are_kept() -> None:
    words = (f"{chr(0x4E00 + n // 100)}{chr(0x5E00 + n % 100)}{n:b}" for n in range(9000))
    assert len(LanguageModel.learn(words).counts) == MOST_NGRAMS


def test_saved_and_loaded(languages: LanguagePair, tmp_path: Path) -> None:
    path = tmp_path / LANGUAGES_FILE
    languages.save(path)
    loaded = LanguagePair.load(path)
    assert loaded.log_odds(*PAIRS[510]) == languages.log_odds(*PAIRS[510])
    languages.save(tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again").read_bytes()
    assert math.isfinite(sum(loaded.log_odds("q", "\U0001f600")))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": "x"}, 'it has no "format"'),
        ({"version": 7}, "has version 7 of the format, this relakit reads version 1"),
        ({"source": []}, "source must hold n-grams"),
        ({"target": {"a": 0}}, "target must hold n-grams"),
        ({"target": {"abcde": 1, "a": 1}}, "target must hold n-grams"),
        ({"target": {"ab": 1}}, "target must hold n-grams"),
        ({"target": {"a": True}}, "target must hold n-grams"),
    ],
)
def test_damaged_files(
    languages: LanguagePair, tmp_path: Path, change: dict[str, object], problem: str
) -> None:
    path = tmp_path / LANGUAGES_FILE
    path.write_text(json.dumps({**languages.content, **change}))
    with pytest.raises(ValueError, match=problem) as caught:
        LanguagePair.load(path)
    assert str(path) in str(caught.value)

"""The optional tagger: what it says about a sentence, and what we say without it."""

import sys

import pytest

from relakit.analysis import AnalysisPair, tagger


@pytest.fixture(autouse=True)
def _no_tagger_kept() -> None:
    tagger._tagger.cache_clear()


@pytest.mark.parametrize(
    ("language", "sentence", "comma", "nouns"),
    [
        ("de", "Der Hund , den der Mann sah , ist alt .", "$,", [1, 5]),
        ("en", "The dog , which the man saw , was old .", "PUN", [1, 5]),
    ],
)
def test_tags(language: str, sentence: str, comma: str, nouns: list[int]) -> None:
    pytest.importorskip("HanTa", reason="the extra `tagger` is not installed")
    words = sentence.split()
    tags = tagger.tag_words(words, language)
    assert len(tags) == len(words)
    assert tags[2] == tags[7] == comma
    assert [place for place, tag in enumerate(tags) if tag.startswith("NN")] == nouns
    assert tagger.tag_words([], language) == ()


def test_a_pair_gets_tags() -> None:
    pytest.importorskip("HanTa", reason="the extra `tagger` is not installed")
    pair = tagger.tag_pair(AnalysisPair.from_texts("A dog.", "Ein Hund."), "de")
    assert pair.target_tags == tagger.tag_words(["Ein", "Hund", "."], "de")
    assert pair.target_tags[2] == "$."


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "HanTa", None)
    monkeypatch.setitem(sys.modules, "HanTa.HanoverTagger", None)
    with pytest.raises(ValueError, match=r"needs the package HanTa: pip install 'relakit\[tagger"):
        tagger.tag_words(["Hund"], "de")


def test_unknown_language() -> None:
    with pytest.raises(ValueError, match="no tagger for language 'fr'; choose one of de, en, nl"):
        tagger.tag_words(["chien"], "fr")

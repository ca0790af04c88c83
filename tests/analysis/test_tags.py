"""Tags from the optional tagger, what we say without it, and what words look like."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from relakit.analysis import AnalysisPair, tag_pair, tag_words, tags, token_class
from relakit.analysis.tags import tag_class


@pytest.fixture(autouse=True)
def _no_pipeline_kept() -> None:
    tags._pipeline.cache_clear()


class FakeDocument(list[Any]):
    def __init__(self, vocab: object, words: list[str]) -> None:
        super().__init__(SimpleNamespace(text=word, pos_="") for word in words)


class FakePipeline:
    vocab = None

    def make_doc(self, text: str) -> FakeDocument:
        return FakeDocument(None, text.split())

    def __call__(self, document: FakeDocument) -> FakeDocument:
        for token in document:
            token.pos_ = {".": "PUNCT", "Hund": "NOUN", "Ein": "DET"}.get(token.text, "")
        return document


def fake_load(name: str) -> FakePipeline:
    if name != "fake":
        raise OSError(f"[E050] Can't find model '{name}'.\nMore about it.")
    return FakePipeline()


@pytest.fixture
def _fake_spacy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=fake_load))


@pytest.mark.usefixtures("_fake_spacy")
def test_a_pair_gets_tags() -> None:
    pair = tag_pair(AnalysisPair.from_texts("A dog.", "Ein Hund."), "fake")
    assert pair.target_tags == ("DET", "NOUN", "PUNCT")
    assert tag_words([], "fake") == ()


@pytest.mark.usefixtures("_fake_spacy")
def test_a_word_without_a_tag() -> None:
    with pytest.raises(ValueError, match="pipeline fake gives no part of speech for 'Katze'"):
        tag_words(["Ein", "Katze"], "fake")


@pytest.mark.usefixtures("_fake_spacy")
def test_a_pipeline_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"cannot load the pipeline 'xx': \[E050\] Can't find"):
        tag_words(["Hund"], "xx")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ValueError, match=r"needs the package spacy: pip install 'relakit\[tagger"):
        tag_words(["Hund"], "de_core_news_sm")


def test_with_spacy_itself(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy", reason="the extra `tagger` is not installed")
    pipeline = spacy.blank("de")
    ruler = pipeline.add_pipe("attribute_ruler")
    ruler.add([[{"IS_ALPHA": True}]], {"POS": "NOUN"})
    ruler.add([[{"IS_PUNCT": True}]], {"POS": "PUNCT"})
    pipeline.to_disk(tmp_path / "pipeline")
    assert tag_words(["Hund", ","], str(tmp_path / "pipeline")) == ("NOUN", "PUNCT")


@pytest.mark.parametrize(
    ("tag", "word", "expected"),
    [("PUNCT", ",", "comma"), ("PUNCT", ".", "PUNCT"), ("VERB", "sieht", "VERB")],
)
def test_commas_are_a_class_of_their_own(tag: str, word: str, expected: str) -> None:
    assert tag_class(tag, word) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (",", "comma"),
        ("、", "comma"),
        (".", "full stop"),
        ("...", "full stop"),
        ("。", "full stop"),
        ("!", "other mark"),
        ("»", "other mark"),
        ("€", "other mark"),
        ("2016", "digit"),
        ("3rd", "digit"),
        ("٣", "digit"),
        ("Hund", "capitalised"),
        ("Übung", "capitalised"),
        ("ǅ", "capitalised"),
        ("hund", "word"),
        ("don't", "word"),
        ("猫", "word"),
    ],
)
def test_token_class(word: str, expected: str) -> None:
    assert token_class(word) == expected

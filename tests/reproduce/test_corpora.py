"""Corpora of the reproduction: their names, and why one cannot be used."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from relakit.reproduce.corpora import CORPORA, SCALES, Corpus, known_scale
from relakit.train.recipe_file import recipe_names

MULTI30K = CORPORA["multi30k-en-de"]


def write(folder: Path, names: Sequence[str]) -> None:
    folder.mkdir()
    for name in names:
        for language in ("en", "de"):
            (folder / f"{name}.{language}").write_text("x\n", encoding="utf-8")


def test_scales() -> None:
    assert [known_scale(scale) for scale in SCALES] == ["tiny", "deep", "paper"]
    with pytest.raises(ValueError, match="unknown scale 'huge'; choose one of tiny, deep, paper"):
        known_scale("huge")


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=lambda corpus: corpus.name)
def test_every_corpus_has_a_recipe_and_an_estimate(corpus: Corpus) -> None:
    assert corpus.recipes.keys() == corpus.minutes.keys()
    assert set(corpus.recipes.values()) <= set(recipe_names())


def test_labels() -> None:
    labels = {name: CORPORA[name].label for name in ("multi30k-fr-en", "demo", "europarl-en-de")}
    assert labels == {
        "multi30k-fr-en": "Multi30k fr-en",
        "demo": "demo en-de",
        "europarl-en-de": "Europarl en-de",
    }
    assert CORPORA["wmt14-en-de"].label == "WMT14 en-de"


def test_complete_data_is_not_missing(tmp_path: Path) -> None:
    write(tmp_path / "multi30k", ["train", "val", "test_2016_flickr"])
    assert MULTI30K.why_missing(tmp_path) is None


def test_generated_data_is_never_missing(tmp_path: Path) -> None:
    assert CORPORA["demo"].why_missing(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["val", "test"], "has no train.en"),
        (["train", "test"], "must have one valid set for Multi30k en-de, it has train, test"),
        (["train", "val"], "must have one test set for Multi30k en-de, it has train, valid"),
        (["train", "val", "test_2016", "test_2017"], "must have one test set"),
    ],
)
def test_incomplete_data_is_missing(names: list[str], problem: str, tmp_path: Path) -> None:
    write(tmp_path / "multi30k", names)
    reason = MULTI30K.why_missing(tmp_path)
    assert reason is not None
    assert reason.startswith(str(tmp_path / "multi30k"))
    assert problem in reason


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    reason = MULTI30K.why_missing(tmp_path)
    assert reason is not None
    assert str(tmp_path / "multi30k") in reason
    assert "--data" in reason

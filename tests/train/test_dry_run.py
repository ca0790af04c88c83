"""What a dry run foretells is what the run does, and it leaves nothing behind."""

import json
import sys
from pathlib import Path

import pytest
from small_runs import MODEL, TRAINING, recipe_of

from relakit.data.prepared_reader import PreparedCorpus
from relakit.train import corpus_sample
from relakit.train.dry_run import dry_run
from relakit.train.recipe import Recipe
from relakit.train.recipe_file import make_recipe, write_recipe
from relakit.train.run import run_training

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def of_text(folder: Path, **data: object) -> Recipe:
    content = {
        "data": {"folder": str(folder), "vocab_size": 300, **data},
        "model": MODEL,
        "training": {**TRAINING, "updates": None, "epochs": 1},
        "validation": {"bleu": False},
    }
    return make_recipe(content, "test")


def test_it_foretells_the_run(corpus: PreparedCorpus, tmp_path: Path) -> None:
    recipe = recipe_of(corpus, training={"updates": None, "epochs": 1})
    found = dry_run(recipe)
    result, _ = run_training(recipe, tmp_path / "run")
    assert found.updates == found.updates_per_epoch == result.updates
    assert found.target_tokens_per_epoch == result.target_tokens
    assert found.parameters == result.parameters
    assert found.trial.seconds_per_token > 0
    assert found.seconds > 0


def test_of_text_as_of_the_corpus_prepared_from_it(
    text_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in text_folder.iterdir()}
    found = dry_run(of_text(text_folder))
    assert {path: path.stat().st_mtime_ns for path in text_folder.iterdir()} == before
    assert not list(tmp_path.iterdir())
    result, _ = run_training(of_text(text_folder), tmp_path / "run")
    assert (found.updates, found.parameters) == (result.updates, result.parameters)
    assert found.target_tokens_per_epoch == result.target_tokens


def test_a_sample_stands_for_all(text_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = dry_run(of_text(text_folder))
    monkeypatch.setattr(corpus_sample, "SAMPLE_PAIRS", 150)
    found = dry_run(of_text(text_folder))
    assert (found.corpus.pairs, found.corpus.split.counts.read) == (600, 150)
    assert found.target_tokens_per_epoch == pytest.approx(whole.target_tokens_per_epoch, rel=0.1)
    assert found.updates == pytest.approx(whole.updates, rel=0.2)
    assert found.corpus.vocabularies == (300, None)
    monkeypatch.undo()
    separate = dry_run(of_text(text_folder, vocabulary="separate"))
    assert separate.corpus.vocabularies == separate.corpus.tokenizers.sizes
    assert separate.parameters > found.parameters
    assert "600 pairs (estimated from 150 of them)" in found.describe()


def test_too_long_pairs_are_not_counted(text_folder: Path) -> None:
    dropped = dry_run(of_text(text_folder, max_tokens=3)).corpus.split
    cut = dry_run(of_text(text_folder, max_tokens=3, long_sentences="truncate")).corpus.split
    assert dropped.counts.kept < cut.counts.kept == 600
    assert dropped.counts.overlong == cut.counts.overlong > 0
    assert dropped.longest == cut.longest == 3


def test_a_generated_corpus_and_the_other_direction() -> None:
    content = {
        "data": {"generated": {"train": 200}, "vocab_size": 400},
        "model": MODEL,
        "training": {**TRAINING, "minutes": 2},
    }
    one = dry_run(make_recipe(content, "test"))
    content["data"] = {**content["data"], "reverse": True}
    other = dry_run(make_recipe(content, "test"))
    assert one.corpus.split.source(0).tolist() == other.corpus.split.target(0).tolist()
    assert one.seconds <= 120
    content["data"] = {**content["data"], "reverse": False, "source": "de", "target": "en"}
    named = dry_run(make_recipe(content, "test"))
    assert named.corpus.split.source(0).tolist() == other.corpus.split.source(0).tolist()
    content["data"] = {**content["data"], "source": "fr"}
    with pytest.raises(ValueError, match="a generated corpus has en and de, not fr and en; set"):
        dry_run(make_recipe(content, "test"))


def test_the_printed_recipe_is_the_recipe(corpus: PreparedCorpus) -> None:
    spec = {"threshold": "learned", "power": 2}
    recipe = recipe_of(corpus, model={"cross_attention": spec}, description='a "word"\nand more')
    text = dry_run(recipe).describe()
    assert make_recipe(tomllib.loads(text), "printed") == make_recipe(
        json.loads(recipe.model_dump_json()), "test"
    )
    assert write_recipe(recipe) in text


def test_what_cannot_be_trained_is_said(corpus: PreparedCorpus, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^training\.batch_tokens = 1, but the longest sentence"):
        dry_run(recipe_of(corpus, training={"batch_tokens": 1}))
    with pytest.raises(ValueError, match="there is no such folder"):
        dry_run(of_text(tmp_path / "nothing"))

"""Runs, and what tells their recipes apart."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import create_model

from relakit.reproduce.corpora import CORPORA
from relakit.reproduce.rows import ALL_ROWS, ROWS
from relakit.reproduce.runs import Run, fingerprint, portable_recipe
from relakit.train.recipe import Recipe, Section, TrainingSection
from relakit.train.recipe_file import load_recipe

RUN = Run(scale="tiny", corpus="multi30k-en-de", row="rela-g", seed=1)
DATA = Path("some") / "data"


def test_recipe_of_a_run() -> None:
    recipe = RUN.recipe(DATA)
    assert recipe.data.folder == DATA / "multi30k"
    assert (recipe.data.source, recipe.data.target) == ("en", "de")
    assert recipe.model.attention == "rela-g"
    assert (recipe.training.seed, recipe.training.threads) == (1, 1)


@pytest.mark.parametrize("row", ALL_ROWS)
def test_rows_differ_in_what_they_say(row: str) -> None:
    recipe = Run(scale="tiny", corpus="demo", row=row, seed=2).recipe(DATA)
    about = ALL_ROWS[row]
    assert recipe.training.seed == 2
    if about.only is None:
        assert recipe.model.attention == about.attention
    else:
        assert recipe.model.attention == "softmax"
        assert getattr(recipe.model, f"{about.only}_attention") == about.attention


def test_the_demo_follows_the_study_of_stability() -> None:
    """What is said about the demo traces to the result files of this row."""
    run = Run(scale="tiny", corpus="demo", row="small-updates-more-epochs", seed=1)
    recipe = run.recipe(Path("data"))
    assert portable_recipe(recipe) == portable_recipe(load_recipe("demo"))


def test_all_rows_train_different_models() -> None:
    runs = [Run(scale="tiny", corpus="demo", row=row, seed=1) for row in ALL_ROWS]
    assert len({fingerprint(run.recipe(DATA)) for run in runs}) == len(ALL_ROWS)
    assert [row.number for row in ROWS.values()] == list(range(1, 14))


@pytest.mark.parametrize(
    "folder", ["data", "2026", "with space", 'quote"d', "back\\slash", "ä", "a.b=c"]
)
def test_the_data_may_be_anywhere(folder: str) -> None:
    assert RUN.recipe(Path(folder)).data.folder == Path(folder) / "multi30k"


def test_portable_recipe_has_no_paths() -> None:
    text = json.dumps(portable_recipe(RUN.recipe(DATA)))
    assert str(DATA) not in text
    content = portable_recipe(RUN.recipe(DATA))
    assert not {"folder", "prepared"} & content["data"].keys()
    assert not {"threads", "device"} & content["training"].keys()
    assert "description" not in content


def test_fingerprint_does_not_depend_on_the_machine() -> None:
    first = fingerprint(RUN.recipe(DATA))
    assert len(first) == 8
    assert fingerprint(RUN.recipe(Path("/elsewhere"))) == first
    assert fingerprint(changed(RUN.recipe(DATA), "training", threads=4, device="cpu")) == first


@pytest.mark.parametrize(
    ("section", "setting"),
    [
        ("training", {"seed": 2}),
        ("training", {"warmup": 17}),
        ("model", {"dropout": 0.33}),
        ("data", {"vocab_size": 123}),
        ("validation", {"final_beam": 9}),
    ],
)
def test_fingerprint_differs_with_settings(section: str, setting: dict[str, Any]) -> None:
    recipe = RUN.recipe(DATA)
    assert fingerprint(changed(recipe, section, **setting)) != fingerprint(recipe)


def test_new_settings_with_defaults_keep_fingerprints() -> None:
    """A later version of relakit knows more settings; what was trained stays known."""
    later_training = create_model("Later", __base__=TrainingSection, mood=(str, "calm"))
    later = create_model("LaterRecipe", __base__=Recipe, training=(later_training, ...))
    assert issubclass(later, Section)
    recipe = RUN.recipe(DATA)
    content = recipe.model_dump(exclude_unset=True)
    assert fingerprint(later.model_validate(content)) == fingerprint(recipe)
    content["training"]["mood"] = "wild"
    assert fingerprint(later.model_validate(content)) != fingerprint(recipe)


def changed(recipe: Recipe, section: str, **settings: Any) -> Recipe:
    part = getattr(recipe, section).model_copy(update=settings)
    return recipe.model_copy(update={section: part})


def test_names_are_paths() -> None:
    assert RUN.name == "tiny/multi30k-en-de/rela-g-1"
    assert RUN.about_corpus is CORPORA["multi30k-en-de"]
    assert RUN.about_row is ROWS["rela-g"]

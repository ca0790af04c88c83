"""Folders of runs and of the corpora that they share."""

from pathlib import Path

import pytest

from relakit.reproduce.places import Places
from relakit.reproduce.runs import Run

PLACES = Places(data=Path("data"), runs=Path("runs"), results=Path("results"))


def run(row: str = "rela-g", seed: int = 1, corpus: str = "demo") -> Run:
    return Run(scale="tiny", corpus=corpus, row=row, seed=seed)


def test_every_run_has_its_folder() -> None:
    runs = [run(row, seed) for row in ("rela-g", "softmax") for seed in (1, 2)]
    folders = {PLACES.folder(one, one.recipe(PLACES.data)) for one in runs}
    assert len(folders) == 4
    assert all(folder.parent == Path("runs/tiny/demo") for folder in folders)


def test_other_settings_have_another_folder() -> None:
    recipe = run().recipe(PLACES.data)
    training = recipe.training.model_copy(update={"warmup": 17})
    other = recipe.model_copy(update={"training": training})
    assert PLACES.folder(run(), recipe) != PLACES.folder(run(), other)


def test_runs_share_a_prepared_corpus() -> None:
    def prepared(one: Run) -> Path:
        return PLACES.prepared(one, one.recipe(PLACES.data))

    assert prepared(run("softmax", 2)) == prepared(run())
    # The same files, but in another direction.
    assert prepared(run(corpus="multi30k-en-de")) != prepared(run(corpus="multi30k-de-en"))


@pytest.mark.parametrize("corpus", ["demo", "multi30k-en-de"])
def test_training_reads_the_prepared_corpus(corpus: str) -> None:
    one = run(corpus=corpus)
    recipe = one.recipe(PLACES.data)
    training = PLACES.training_recipe(one, recipe)
    assert training.data.prepared == PLACES.prepared(one, recipe)
    assert training.data.folder is None
    assert training.data.generated is None
    assert training.data.vocab_size == recipe.data.vocab_size
    assert training.model == recipe.model

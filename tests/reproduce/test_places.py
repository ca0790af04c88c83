"""Folders of runs and of the corpora that they share."""

import threading
from pathlib import Path

import pytest

from relakit.files.locks import locked
from relakit.reproduce import places as places_module
from relakit.reproduce.places import Places
from relakit.reproduce.runs import Run
from relakit.train.recipe import Recipe

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


def test_who_is_at_work(tmp_path: Path) -> None:
    places = Places(data=tmp_path, runs=tmp_path / "runs", results=tmp_path)
    assert places.at_work() is None
    folder = places.folder(run(), run().recipe(places.data))
    folder.mkdir(parents=True)
    assert places.at_work() is None
    with locked(folder):
        assert places.at_work() == folder
    corpus = places.prepared(run(), run().recipe(places.data)).parent
    corpus.mkdir(parents=True)
    with locked(corpus):
        assert places.at_work() == corpus


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


def test_a_folder_of_other_defaults_is_left_alone(tmp_path: Path) -> None:
    places = Places(data=tmp_path, runs=tmp_path / "runs", results=tmp_path)
    recipe = run().recipe(tmp_path)
    first = places.folder(run(), recipe)
    first.mkdir(parents=True)
    assert places.folder(run(), recipe) == first, "nothing was begun"
    begun = places.training_recipe(run(), recipe)
    (first / "recipe.json").write_text(begun.model_dump_json(), encoding="utf-8")
    assert places.folder(run(), recipe) == first
    other = begun.model_copy(
        update={"training": begun.training.model_copy(update={"label_smoothing": 0.3})}
    )
    (first / "recipe.json").write_text(other.model_dump_json(), encoding="utf-8")
    second = places.folder(run(), recipe)
    assert second == first.with_name(f"{first.name}-2")
    second.mkdir()
    (second / "recipe.json").write_text('{"mood": "good"}', encoding="utf-8")
    assert places.folder(run(), recipe) == first.with_name(f"{first.name}-3")


def small_recipe(vocab_size: int) -> Recipe:
    generated = {"train": 60, "valid": 2, "test": 2}
    data = {"generated": generated, "vocab_size": vocab_size}
    return Recipe.model_validate({"data": data, "training": {"updates": 1}})


def test_a_corpus_of_other_defaults_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Places(data=tmp_path, runs=tmp_path / "runs", results=tmp_path)
    # As if both had been the default once.
    monkeypatch.setattr(places_module, "fingerprint_of", lambda _: "same")
    old, new = (places.prepare(run(), small_recipe(size)) for size in (300, 320))
    assert old.folder.parent.name == "demo-same"
    assert new.folder.parent.name == "demo-same-2"
    assert (old.settings.vocab_size, new.settings.vocab_size) == (300, 320)
    assert places.prepared(run(), small_recipe(300)) == old.folder


def test_a_corpus_is_prepared_by_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    monkeypatch.setattr(places_module, "open_corpus", lambda _, folder, **__: opened.append(folder))
    places = Places(data=tmp_path, runs=tmp_path / "runs", results=tmp_path)
    recipe = small_recipe(300)
    folder = places.prepared(run(), recipe)
    second = threading.Thread(target=places.prepare, args=(run(), recipe))
    with locked(folder.parent):
        second.start()
        second.join(0.2)
        assert opened == []
    second.join(10)
    assert opened == [folder]

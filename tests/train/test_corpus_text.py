"""A run that has not begun prepares its corpus again if the text is another by now."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_runs import MODEL, TRAINING

from relakit.train import run as run_module
from relakit.train.recipe import Recipe
from relakit.train.recipe_file import make_recipe
from relakit.train.run import run_training
from relakit.train.run_folder import CORPUS, CORPUS_TEXT

LONG_AGO = 10**18
"""In nanoseconds since 1970: 2001."""


@pytest.fixture
def text(text_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(text_folder, tmp_path / "text"))


@pytest.fixture
def prepared(text: Path, tmp_path: Path) -> Path:
    """The folder of a run that got no further than its corpus."""
    only_prepare(recipe_of(text), tmp_path / "run")
    return tmp_path / "run"


def only_prepare(recipe: Recipe, run: Path) -> None:
    def stop(*arguments: object) -> None:
        raise ValueError("this is far enough")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "check_corpus", stop)
        with pytest.raises(ValueError, match="far enough"):
            run_training(recipe, run)


def recipe_of(text: Path, **model: object) -> Recipe:
    content = {
        "data": {"folder": str(text), "vocab_size": 280},
        "model": {**MODEL, **model},
        "training": {**TRAINING, "updates": 1},
        "validation": {"bleu": False},
    }
    return make_recipe(content, "test")


def is_prepared_again(run: Path, recipe: Recipe) -> bool:
    before = (run / CORPUS).stat().st_mtime_ns
    run_training(recipe, run)
    return (run / CORPUS).stat().st_mtime_ns != before


def replace_by_older(text: Path) -> None:
    path = text / "train.de"
    path.write_text(path.read_text(encoding="utf-8").swapcase(), encoding="utf-8")
    os.utime(path, ns=(LONG_AGO, LONG_AGO))


def add_an_old_test_set(text: Path) -> None:
    for side in ("en", "de"):
        shutil.copy(text / f"test.{side}", text / f"test2.{side}")
        os.utime(text / f"test2.{side}", ns=(LONG_AGO, LONG_AGO))


def remove_a_split(text: Path) -> None:
    for side in ("en", "de"):
        (text / f"valid.{side}").unlink()


def append_at_the_same_time(text: Path) -> None:
    path = text / "valid.en"
    status = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace("\n", " \n"), encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def make_newer(text: Path) -> None:
    now = (text.parent / "run" / CORPUS / "corpus.json").stat().st_mtime_ns + 10**9
    os.utime(text / "test.en", ns=(now, now))


@pytest.mark.parametrize(
    "change",
    [
        replace_by_older,
        add_an_old_test_set,
        remove_a_split,
        append_at_the_same_time,
        make_newer,
    ],
)
def test_after_a_change(prepared: Path, text: Path, change: Callable[[Path], None]) -> None:
    change(text)
    assert is_prepared_again(prepared, recipe_of(text))


def test_without_a_change(prepared: Path, text: Path) -> None:
    assert not is_prepared_again(prepared, recipe_of(text))


def test_without_the_text_it_is_kept(prepared: Path, text: Path) -> None:
    """As in a run that has begun. Only the check before training insists on a folder."""
    for path in text.glob("train.*"):
        path.unlink()
    assert not is_prepared_again(prepared, recipe_of(text))


@pytest.mark.parametrize(
    ("change", "expected"), [(make_newer, True), (replace_by_older, False), (remove_a_split, False)]
)
def test_of_an_earlier_version(
    prepared: Path, text: Path, change: Callable[[Path], None], expected: bool
) -> None:
    """Which noted nothing: only newer files count."""
    (prepared / CORPUS_TEXT).unlink()
    for path in text.iterdir():
        os.utime(path, ns=(LONG_AGO, LONG_AGO))
    change(text)
    assert is_prepared_again(prepared, recipe_of(text)) is expected


def test_the_starting_model_counts_too(prepared: Path, text: Path, tmp_path: Path) -> None:
    run_training(recipe_of(text), prepared)
    start = Path(shutil.copytree(prepared / "model", tmp_path / "start"))
    recipe = recipe_of(text, start_from=str(start))
    only_prepare(recipe, tmp_path / "other")
    os.utime(start / "tokenizer.json", ns=(LONG_AGO, LONG_AGO))
    assert is_prepared_again(tmp_path / "other", recipe)

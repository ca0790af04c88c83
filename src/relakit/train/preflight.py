"""What can be wrong with a run before it begins, found without torch, which takes seconds to load.

`run_training` checks again when it has the folder to itself.
"""

from pathlib import Path

from relakit.data.text_folder import find_train
from relakit.files.locks import check_unlocked
from relakit.files.output_paths import RUN, check_is_folder
from relakit.files.writing import check_writable
from relakit.limits import checked_threads
from relakit.train.checkpoint import check_checkpoint, find_checkpoints
from relakit.train.corpus import open_corpus
from relakit.train.feasibility import (
    check_batch_tokens,
    check_corpus,
    check_model,
    with_own_matrix,
    with_settings_of_corpus,
)
from relakit.train.main_process import is_main_process
from relakit.train.recipe import Recipe
from relakit.train.resume import check_place_of_model, read_recipe, settle_recipe
from relakit.train.run_folder import CHECKPOINTS, CORPUS
from relakit.train.starting_model import with_starting_model


def check_run(recipe: Recipe | None, folder: Path, *, resume: bool) -> Recipe:
    """Check a run, and return its recipe as `run_training` will use it; same arguments.

    Raises:
        ValueError: the folder's run cannot be resumed, or its corpus cannot be used.
        OSError: the folder holds something else.
    """
    if recipe is not None:
        recipe = settled_settings(recipe, read_recipe(folder))
    settled = settle_recipe(recipe, folder, resume=resume)
    check_is_folder(folder, RUN)
    check_place_of_model(folder)
    check_writable(folder, is_folder=True)
    if is_main_process():  # processes that come later would find its lock
        check_unlocked(folder)
    check_settings(settled)
    if resume:
        for checkpoint in find_checkpoints(folder / CHECKPOINTS, interrupted=True)[-1:]:
            check_checkpoint(checkpoint)
    _check_data(settled, folder)
    return settled


def check_settings(recipe: Recipe) -> None:
    """Raise ValueError for settings that cannot be, whatever the corpus is."""
    checked_threads("training.threads", recipe.training.threads, least=0)
    if recipe.data.prepared is None and recipe.training.device == "cpu":
        check_model(recipe, None)


def _check_data(recipe: Recipe, folder: Path) -> None:
    """Check the text or the corpus, as far as they exist, and the memory that training needs."""
    data, is_on_cpu = recipe.data, recipe.training.device == "cpu"
    if data.prepared is not None:
        corpus = open_corpus(data, folder / CORPUS)
        check_batch_tokens(recipe, corpus.train)
        if is_on_cpu:  # only torch knows the memory of other devices, and whether there are any
            check_corpus(recipe, corpus, None)
        return
    check_text(recipe, folder)


def check_text(recipe: Recipe, folder: Path) -> None:
    """Raise ValueError for a folder without text, unless the run has already prepared it."""
    data, before = recipe.data, read_recipe(folder)
    is_new = before is None or before.data.folder != data.folder
    if data.folder is not None and (is_new or not (folder / CORPUS).exists()):
        find_train(data.folder, data.source, data.target)


def settled_settings(recipe: Recipe, before: Recipe | None = None) -> Recipe:
    """The recipe with the settings that its corpus and its starting model decide.

    ``before`` is the recipe of the run that it continues.
    """
    recipe = recipe.model_copy(update={"data": with_settings_of_corpus(recipe.data)})
    return with_own_matrix(with_starting_model(recipe, before))

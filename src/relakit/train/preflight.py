"""What can be wrong with a run before it begins, found without torch, which takes seconds to load.

`run_training` looks again, when it has the folder for itself.
"""

from pathlib import Path

from relakit.data.text_folder import find_train
from relakit.limits import checked_threads
from relakit.train.feasibility import with_own_matrix, with_settings_of_corpus
from relakit.train.recipe import Recipe
from relakit.train.resume import read_recipe, settle_recipe
from relakit.train.run_folder import CORPUS
from relakit.train.starting_model import with_starting_model


def check_run(recipe: Recipe | None, folder: Path, *, resume: bool) -> Recipe:
    """The recipe of the run, as `run_training` will take it; the arguments are the same.

    Raises:
        ValueError: the folder's run cannot be gone on with, or its corpus cannot be used.
        OSError: the folder holds something else.
    """
    if recipe is not None:
        recipe = settled_settings(recipe, read_recipe(folder))
    settled = settle_recipe(recipe, folder, resume=resume)
    if settled.training.threads:
        checked_threads("training.threads", settled.training.threads)
    data = settled.data
    if data.folder is not None and not (folder / CORPUS).exists():
        find_train(data.folder, data.source, data.target)
    return settled


def settled_settings(recipe: Recipe, before: Recipe | None = None) -> Recipe:
    """The recipe with what its corpus, and the model that it starts from, decide.

    ``before`` is the recipe of the run that it goes on with.
    """
    recipe = recipe.model_copy(update={"data": with_settings_of_corpus(recipe.data)})
    return with_own_matrix(with_starting_model(recipe, before))

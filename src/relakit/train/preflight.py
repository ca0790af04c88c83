"""What can be wrong with a run before it begins, found without torch, which takes seconds to load.

`run_training` looks again, when it has the folder for itself.
"""

from pathlib import Path

from relakit.data.text_folder import find_train
from relakit.limits import checked_threads
from relakit.train.feasibility import with_languages_of_corpus
from relakit.train.recipe import Recipe
from relakit.train.resume import settle_recipe
from relakit.train.run_folder import CORPUS


def check_run(recipe: Recipe | None, folder: Path, *, resume: bool) -> Recipe:
    """The recipe of the run, as `run_training` will take it; the arguments are the same.

    Raises:
        ValueError: the folder's run cannot be gone on with, or its corpus cannot be used.
        OSError: the folder holds something else.
    """
    if recipe is not None:
        recipe = recipe.model_copy(update={"data": with_languages_of_corpus(recipe.data)})
    settled = settle_recipe(recipe, folder, resume=resume)
    if settled.training.threads:
        checked_threads("training.threads", settled.training.threads)
    data = settled.data
    if data.folder is not None and not (folder / CORPUS).exists():
        find_train(data.folder, data.source, data.target)
    return settled

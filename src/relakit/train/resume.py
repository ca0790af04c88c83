"""What a resumed run uses: the recipe in its folder, and what may differ from it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from relakit.data.json_file import read_json
from relakit.files.output_paths import MODEL as MODEL_DIRECTORY
from relakit.files.output_paths import RUN, what_is_in
from relakit.model.description import check_model_folder
from relakit.train.checkpoint import find_checkpoints
from relakit.train.recipe import Recipe
from relakit.train.recipe_file import make_recipe
from relakit.train.run_folder import CHECKPOINTS, MODEL, RECIPE, RUN_ENTRIES

MAY_CHANGE: Final = (
    "description",
    "data.folder",
    "data.prepared",
    "training.average",
    "training.checkpoint_every",
    "training.device",
    "training.epochs",
    "training.give_up_after",
    "training.keep",
    "training.minutes",
    "training.threads",
    "training.updates",
    "validation",
)
"""Settings that a resumed run may change. None of them affects the updates that are made, except
the number of updates if there is a cooldown, which is a share of it. The corpus may move, but not
change: the trainer compares. A corpus that the run prepared for itself is used again, wherever its
text is now."""


def settle_recipe(recipe: Recipe | None, folder: Path, *, resume: bool) -> Recipe:
    """The recipe of the run that starts or resumes in a folder.

    Args:
        recipe: what was asked for; None for the recipe in the folder.
        folder: the run's folder.
        resume: whether to resume an existing run.

    Raises:
        ValueError: there is nothing to resume, or the recipes differ in what must stay the same.
        FileExistsError: the folder already holds a run, or something else.
    """
    before = recipe_to_resume(folder) if recipe is None else read_recipe(folder)
    if before is None:
        assert recipe is not None
        _check_new_folder(folder)
        return recipe
    if not find_checkpoints(folder / CHECKPOINTS, interrupted=True):
        if MODEL_DIRECTORY.is_at(folder / MODEL):
            raise FileExistsError(
                f"{folder} holds a trained model, but no checkpoints to resume from; choose "
                "another --out"
            )
        return recipe or before  # it did not get to its first checkpoint: nothing is lost
    if recipe is None:
        return before
    if not resume:
        raise FileExistsError(
            f"{folder} holds a run already; continue it with --resume, or choose another --out"
        )
    differences = [
        f"{key} = {old!r}, the recipe says {new!r}"
        for key, old, new in lasting_differences(before, recipe)
    ]
    if differences:
        raise ValueError(
            f"{folder} was trained with {'; '.join(differences)}. A resumed run keeps all that "
            "decides its updates; use the same values, or choose another --out"
        )
    return recipe


def recipe_to_resume(folder: Path) -> Recipe:
    """The recipe of the run in a folder; ValueError if there is none."""
    recipe = read_recipe(folder)
    if recipe is None:
        raise ValueError(f"{folder} has no {RECIPE}, so there is nothing to resume")
    return recipe


def check_place_of_model(folder: Path) -> None:
    """Raise FileExistsError if a run's model would replace anything but its previous model."""
    check_model_folder(folder / MODEL, replace=True, advice="move it elsewhere")


def lasting_differences(before: Recipe, recipe: Recipe) -> Iterator[tuple[str, Any, Any]]:
    """The settings that a resumed run must not change but does, with both values of each."""
    both = before.model_dump(mode="json"), recipe.model_dump(mode="json")
    fixed = {"training.updates"} if before.training.cooldown else set()
    return (
        found for found in _differences(*both) if found[0] in fixed or not _may_change(found[0])
    )


def read_recipe(folder: Path) -> Recipe | None:
    """The recipe of the run in a folder; None if there is none."""
    path = folder / RECIPE
    if not path.exists():
        return None
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path} is no recipe: it must have keys and values")
    return make_recipe(content, str(path))


def _check_new_folder(folder: Path) -> None:
    """Refuse to mix a run with something else; files whose names do not clash are left alone."""
    other = what_is_in(folder)
    if other is None:
        found = (repr(name) for name in RUN_ENTRIES if (folder / name).exists())
        other = next(found, None)
    if other is not None:
        raise FileExistsError(
            f"{folder} holds {other}, but no {RECIPE} of {RUN.name}, which needs a folder of its "
            "own; choose another --out"
        )


def _may_change(key: str) -> bool:
    return any(key == allowed or key.startswith(f"{allowed}.") for allowed in MAY_CHANGE)


def _differences(
    old: dict[str, Any], new: dict[str, Any], section: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """Keys such as ``training.epochs`` whose values differ, and both values."""
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _differences(before, after, f"{section}{key}.")
        elif before != after:
            yield section + key, before, after

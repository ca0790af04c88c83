"""The recipe of a study, with the paths of its texts filled in."""

from collections.abc import Sequence
from pathlib import Path

from relakit.reproduce.corpora import CORPORA
from relakit.train.recipe import Recipe
from relakit.train.recipe_file import load_recipe


def study_recipe(
    recipe: str, corpus: str | None, data: Path, settings: Sequence[str] = ()
) -> Recipe:
    """A recipe for a corpus under ``data``; for None, the recipe generates its own corpus."""
    places = [] if corpus is None else CORPORA[corpus].settings(data)
    return load_recipe(recipe, [*places, *settings])

"""One training run of the reproduction: which model, on what, with which seed."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relakit.reproduce.corpora import CORPORA, Corpus, Scale
from relakit.reproduce.rows import ALL_ROWS, Row
from relakit.train.recipe import Recipe
from relakit.train.recipe_file import load_recipe


@dataclass(frozen=True, kw_only=True, order=True)
class Run:
    """A row of Table 1, trained on a corpus at a scale."""

    scale: Scale
    corpus: str
    """A name in `CORPORA`."""
    row: str
    """A name in `ALL_ROWS`."""
    seed: int

    @property
    def name(self) -> str:
        """``tiny/multi30k-en-de/rela-g-1``: also the path of its result file."""
        return f"{self.scale}/{self.corpus}/{self.row}-{self.seed}"

    @property
    def about_corpus(self) -> Corpus:
        return CORPORA[self.corpus]

    @property
    def about_row(self) -> Row:
        return ALL_ROWS[self.row]

    def recipe(self, data: Path) -> Recipe:
        """What is trained. Below the paper's scale, runs go side by side, with one thread each."""
        corpus = self.about_corpus
        settings = [
            *corpus.settings(data),
            *self.about_row.settings(),
            f"training.seed={self.seed}",
            *([] if self.scale == "paper" else ["training.threads=1"]),
        ]
        return load_recipe(corpus.recipes[self.scale], settings)


def portable_recipe(recipe: Recipe, *, exclude_defaults: bool = False) -> dict[str, Any]:
    """The recipe as result files have it: without what differs between machines."""
    content: dict[str, Any] = recipe.model_dump(mode="json", exclude_defaults=exclude_defaults)
    content.pop("description", None)
    for section, keys in (("data", ("folder", "prepared")), ("training", ("threads", "device"))):
        for key in keys:
            content[section].pop(key, None)
    return content


def fingerprint(recipe: Recipe) -> str:
    """Eight digits that differ between recipes that train different models.

    Settings at their defaults do not count: a new setting must not invalidate all earlier runs.
    """
    return fingerprint_of(portable_recipe(recipe, exclude_defaults=True))


def fingerprint_of(content: object) -> str:
    """Eight digits that stand for this content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]

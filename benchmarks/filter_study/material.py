"""Pairs that the models have not seen: clean ones to calibrate on, and noisy ones to find."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relakit.analysis import AnalysisPair
from relakit.data.generated import Split
from relakit.data.labelled_pairs import LabelledPair, read_labelled_pairs
from relakit.data.noise_draw import CLEAN
from relakit.data.planted_noise import plant_text_noise
from relakit.known_names import known_name
from relakit.reproduce.analyses import GOOD, PARACRAWL
from relakit.reproduce.split_pairs import split_pairs
from relakit.train.recipe import Recipe
from study_recipes import study_recipe

GENERATED, MULTI30K, EUROPARL, LABELLED = "generated", "multi30k", "europarl", "labelled"
STUDIES: Final = (GENERATED, MULTI30K, EUROPARL, LABELLED)
TITLES: Final = {
    GENERATED: "Generated English-German",
    MULTI30K: "Captions (Multi30k English-German)",
    EUROPARL: "Debates (Europarl English-German)",
    LABELLED: "Crawled pairs judged by people (ParaCrawl English-German), with the debates' models",
}
RECIPES: Final = {GENERATED: "demo", MULTI30K: "multi30k-tiny", EUROPARL: "europarl-short"}
_CORPORA: Final = {MULTI30K: "multi30k-en-de", EUROPARL: "europarl-en-de"}
_MORE: Final = ("data.generated.valid=2000", "data.generated.test=4000")
"""More pairs than in the recipe: generated pairs cost nothing."""
BAD: Final = ("A", "L", "E")
"""Labels given by people: misaligned, wrong language, errors in the translation."""
SEED: Final = 1
"""Seed of the planted noise."""


@dataclass(frozen=True)
class Noisy:
    """Labelled pairs, and the original of each pair that noise was planted in."""

    pairs: Sequence[LabelledPair]
    good: tuple[str, ...]
    bad: tuple[str, ...]
    """Kinds of noise, in the order of the page; pairs with other labels are ignored"""
    originals: Sequence[str] | None = None
    """Targets before noise was planted; None: no noise was planted"""


@dataclass(frozen=True)
class Material:
    """The pairs of one study."""

    name: str
    recipe: Recipe
    data: Path

    @classmethod
    def of(cls, name: str, data: Path) -> "Material":
        known_name("study", name, STUDIES)
        corpus = EUROPARL if name == LABELLED else name
        more = _MORE if corpus == GENERATED else ()
        recipe = study_recipe(RECIPES[corpus], _CORPORA.get(corpus), data, more)
        return cls(name, recipe, data)

    @property
    def models(self) -> str:
        """The name of the models' folder."""
        return EUROPARL if self.name == LABELLED else self.name

    def learned(self) -> list[AnalysisPair]:
        """The pairs that the models were trained on."""
        return split_pairs(self.recipe, "train")

    def clean(self) -> list[tuple[str, str]]:
        """The pairs that calibrations are fitted on."""
        return self._texts("valid")

    def noisy(self) -> Noisy:
        """The pairs to be judged."""
        if self.name == LABELLED:
            return Noisy(list(read_labelled_pairs(self.data / PARACRAWL)), GOOD, BAD)
        texts = self._texts("test")
        planted = list(plant_text_noise(texts, seed=SEED))
        kinds = tuple(dict.fromkeys(pair.label for pair in planted if pair.label != CLEAN))
        return Noisy(planted, (CLEAN,), kinds, [target for _, target in texts])

    def _texts(self, split: Split) -> list[tuple[str, str]]:
        return [(pair.source, pair.target) for pair in split_pairs(self.recipe, split)]

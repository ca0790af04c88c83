"""Corpora with gold links: the pairs to learn from, to choose heads on and to score."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from relakit.analysis import AnalysisPair
from relakit.known_names import known_name
from relakit.reproduce.corpora import CORPORA
from relakit.reproduce.gold_sets import rwth_pairs
from relakit.reproduce.split_pairs import split_pairs
from relakit.train.recipe import Recipe
from study_recipes import study_recipe

GENERATED, EUROPARL = "generated", "europarl"
CORPUS: Final = "europarl-en-de"
STUDIES: Final = (GENERATED, EUROPARL)
RECIPES: Final = {GENERATED: "demo", EUROPARL: "europarl-short"}
TITLES: Final = {
    GENERATED: "Generated English-German, exact gold links",
    EUROPARL: "Europarl English-German, the paper's gold links (RWTH)",
}


@dataclass(frozen=True)
class Material:
    """The pairs of one study, English to German."""

    name: str
    recipe: Recipe
    data: Path

    @classmethod
    def of(cls, name: str, data: Path) -> "Material":
        corpus = CORPUS if known_name("study", name, STUDIES) == EUROPARL else None
        return cls(name, study_recipe(RECIPES[name], corpus, data), data)

    def learned(self) -> Iterator[AnalysisPair]:
        """The pairs that models, layers and eflomal learn from, without gold links."""
        return map(_without_gold, split_pairs(self.recipe, "train"))

    def chosen_on(self) -> list[AnalysisPair]:
        """The pairs that heads are chosen on and layers are examined on, without gold links."""
        return [_without_gold(pair) for pair in split_pairs(self.recipe, "valid")]

    def gold(self) -> list[AnalysisPair]:
        """The pairs to score."""
        if self.name == EUROPARL:
            return rwth_pairs(self.data, CORPORA[CORPUS])
        return split_pairs(self.recipe, "test")


def _without_gold(pair: AnalysisPair) -> AnalysisPair:
    return replace(pair, gold=None)

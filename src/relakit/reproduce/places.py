"""Where the reproduction reads and writes, and the corpora that its runs share."""

from dataclasses import dataclass
from pathlib import Path

from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.stages import OnStage, ignore_stage
from relakit.reproduce.records import Records, read_records
from relakit.reproduce.runs import Run, fingerprint, fingerprint_of
from relakit.train.corpus import open_corpus
from relakit.train.recipe import DataSection, Recipe


@dataclass(frozen=True, kw_only=True)
class Places:
    """Three folders."""

    data: Path
    """Corpora, each in its folder"""
    runs: Path
    """Training runs and prepared corpora: large, and not to be published"""
    results: Path
    """Result files and the page"""

    def records(self) -> Records:
        return read_records(self.results)

    def folder(self, run: Run, recipe: Recipe) -> Path:
        """Where a run is trained. Other settings have another folder: nothing is overwritten."""
        return self.runs / f"{run.name}-{fingerprint(recipe)}"

    def prepared(self, run: Run, recipe: Recipe) -> Path:
        """Where the corpus of a run is prepared, once for all runs with the same settings."""
        # Without defaults, as in `fingerprint`.
        content = recipe.data.model_dump(
            mode="json", exclude={"folder", "prepared"}, exclude_defaults=True
        )
        return self.runs / "corpora" / f"{run.corpus}-{fingerprint_of(content)}" / "corpus"

    def prepare(
        self, run: Run, recipe: Recipe, *, on_stage: OnStage = ignore_stage
    ) -> PreparedCorpus:
        """Prepare the corpus of a run, unless that was done before."""
        folder = self.prepared(run, recipe)
        folder.parent.mkdir(parents=True, exist_ok=True)
        return open_corpus(recipe.data, folder, on_stage=on_stage)

    def training_recipe(self, run: Run, recipe: Recipe) -> Recipe:
        """The recipe with the prepared corpus in place of text."""
        data = DataSection.model_validate(
            {
                **recipe.data.model_dump(exclude={"folder", "generated"}),
                "prepared": self.prepared(run, recipe),
            }
        )
        return recipe.model_copy(update={"data": data})

"""Where the reproduction reads and writes, and the corpora that its runs share."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from relakit.data.prepared_format import read_document
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.stages import OnStage, ignore_stage
from relakit.files.locks import is_locked, locked
from relakit.reproduce.records import Records, read_records
from relakit.reproduce.runs import Run, fingerprint, fingerprint_of
from relakit.train.corpus import open_corpus, prepare_settings
from relakit.train.recipe import DataSection, Recipe
from relakit.train.resume import lasting_differences, read_recipe
from relakit.train.run_folder import CORPUS


@dataclass(frozen=True, kw_only=True)
class Places:
    """The folders for data, runs and results."""

    data: Path
    """Corpora, each in its own folder"""
    runs: Path
    """Training runs and prepared corpora: large, and not to be published"""
    results: Path
    """Result files and the page"""

    @property
    def silver(self) -> Path:
        """eflomal's links, by corpus.

        They are random, so they are kept with the results that were measured with them.
        """
        return self.results / "silver"

    def records(self) -> Records:
        return read_records(self.results)

    def folder(self, run: Run, recipe: Recipe) -> Path:
        """Where a run is trained. Other settings get another folder, so nothing is overwritten."""
        wanted = _with_corpus(recipe, Path("anywhere"))
        folders = _numbered(self.runs / f"{run.name}-{fingerprint(recipe)}")
        return next(folder for folder in folders if _is_free_for(wanted, folder))

    def prepared(self, run: Run, recipe: Recipe) -> Path:
        """Where the corpus of a run is prepared, once for all runs with the same settings."""
        # Without defaults, as in `fingerprint`.
        content = recipe.data.model_dump(
            mode="json", exclude={"folder", "prepared"}, exclude_defaults=True
        )
        folders = _numbered(self.runs / "corpora" / f"{run.corpus}-{fingerprint_of(content)}")
        settings = prepare_settings(recipe.data)
        corpora = (folder / CORPUS for folder in folders)
        return next(
            corpus
            for corpus in corpora
            if not corpus.exists() or read_document(corpus).settings == settings
        )

    def prepare(
        self, run: Run, recipe: Recipe, *, on_stage: OnStage = ignore_stage
    ) -> PreparedCorpus:
        """Prepare a run's corpus unless that is done; wait if another process is doing it."""
        folder = self.prepared(run, recipe)
        with locked(folder.parent, wait=True):
            return open_corpus(recipe.data, folder, on_stage=on_stage)

    def at_work(self) -> Path | None:
        """A folder in which a run or a corpus is being made right now, if there is one."""
        folders = sorted([*self.runs.glob("*/*/*/"), *self.runs.glob("corpora/*/")])
        return next((folder for folder in folders if is_locked(folder)), None)

    def training_recipe(self, run: Run, recipe: Recipe) -> Recipe:
        """The recipe with the prepared corpus in place of text."""
        return _with_corpus(recipe, self.prepared(run, recipe))


def _with_corpus(recipe: Recipe, prepared: Path) -> Recipe:
    settings = recipe.data.model_dump(exclude={"folder", "generated"})
    data = DataSection.model_validate({**settings, "prepared": prepared})
    return recipe.model_copy(update={"data": data})


def _numbered(folder: Path) -> Iterator[Path]:
    """The folder, then numbered ones: its name says nothing of defaults, which may have changed."""
    yield folder
    for number in count(2):
        yield folder.with_name(f"{folder.name}-{number}")


def _is_free_for(recipe: Recipe, folder: Path) -> bool:
    """Whether a run with this recipe can start or resume in a folder."""
    try:
        before = read_recipe(folder)
    except ValueError:
        return False  # started with a setting that no longer exists
    return before is None or not any(lasting_differences(before, recipe))

"""What is measured on a trained model, besides its translations."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from relakit.analysis import (
    AnalysisPair,
    ModelAnalysis,
    QualityRanking,
    analyze_model,
    bootstrap_alignment,
    count_pair_links,
    rank_quality,
    score_pairs,
)
from relakit.analysis.results import SentenceView, spread
from relakit.analysis.settings import EXPLORED
from relakit.data.generated import Split
from relakit.data.labelled_pairs import LabelledPair, read_labelled_pairs
from relakit.data.noise_draw import CLEAN
from relakit.data.planted_noise import plant_text_noise
from relakit.decode.translator import Translator
from relakit.files.reading import file_digest
from relakit.model.description import WEIGHTS_FILE
from relakit.reproduce.eflomal import why_no_eflomal
from relakit.reproduce.figures import can_show_examples, lacks_examples, write_examples
from relakit.reproduce.gold_sets import RWTH, gold_digest, rwth_pairs, silver_pairs
from relakit.reproduce.places import Places
from relakit.reproduce.records import AlignmentStudy, RunRecord
from relakit.reproduce.runs import Run
from relakit.reproduce.split_pairs import split_pairs
from relakit.train.recipe import Recipe
from relakit.train.run_folder import MODEL

NOISE_SEED: Final = 1
ENGLISH_GERMAN: Final = ("europarl-en-de", "wmt14-en-de")
"""Corpora whose models know the words of the paper's gold set and of crawled text."""
PARACRAWL: Final = Path("paracrawl-labels") / "v3.en-de.tsv.gz"
"""Pairs labelled by people, in the data folder."""
GOOD, BAD = ("V",), ("A", "L")
"""Their labels for valid pairs, and for pairs that are misaligned or in a wrong language."""
GENERATED_GOLD, SILVER, RWTH_GOLD = "generated", "eflomal", "RWTH"
PLANTED, PEOPLE = "planted noise", "ParaCrawl labels"


def wanted_analyses(run: Run, places: Places) -> list[str]:
    """The analyses of a finished run, as far as this machine has what they need."""
    wanted = ["attention", PLANTED]
    if run.about_corpus.folder is None:
        wanted.append(GENERATED_GOLD)
    if run.corpus.startswith("multi30k"):
        can_align = _silver_folder(run, places).is_dir() or why_no_eflomal() is None
        wanted += [SILVER] if can_align else []
    if run.corpus in ENGLISH_GERMAN:
        wanted += [RWTH_GOLD] if (places.data / RWTH).is_dir() else []
        wanted += [PEOPLE] if (places.data / PARACRAWL).is_file() else []
    return wanted


def gold_pairs(name: str, run: Run, recipe: Recipe, places: Places) -> list[AnalysisPair]:
    """The pairs with links that a run's cross-attention is compared with."""
    if name == RWTH_GOLD:
        return rwth_pairs(places.data, run.about_corpus)
    if name == SILVER:
        return silver_pairs(recipe, _silver_folder(run, places))
    return split_pairs(recipe, "test")


def _silver_folder(run: Run, places: Places) -> Path:
    return places.silver / run.corpus


def missing_analyses(record: RunRecord, places: Places) -> list[str]:
    """The wanted analyses that a record does not have yet."""
    if record.training.verdict != "finished":
        return []
    there = {*record.alignments, *record.rankings}
    # Files from before attention outputs were measured are completed.
    has_outputs = (
        record.attention is not None and record.attention.kind("cross").output_rms is not None
    )
    if has_outputs and not lacks_examples(record.run, places.results):
        there.add("attention")
    return [name for name in wanted_analyses(record.run, places) if name not in there]


def why_no_model(record: RunRecord, folder: Path) -> str | None:
    """Why the model of a run cannot be analyzed, if it cannot: one record is about one model."""
    model = folder / MODEL
    if not model.is_dir():
        return f"there is no model in {folder} to analyze"
    if record.weights_digest not in (None, weights_digest(folder)):
        return f"{model} is not the model that the result file is about: it was trained anew"
    return None


def weights_digest(folder: Path) -> str | None:
    """The digest of the trained model in a run's folder; None if there is no model."""
    weights = folder / MODEL / WEIGHTS_FILE
    return file_digest(weights) if weights.is_file() else None


def analyze_run(
    record: RunRecord, recipe: Recipe, folder: Path, places: Places
) -> Iterator[RunRecord]:
    """Analyze the model in a run's folder; yields the record after each missing analysis.

    Raises:
        ValueError: the model is not the record's own; or, once all others are done, some analyses
            failed, with the reasons.
    """
    problem = why_no_model(record, folder)
    if problem is not None:
        raise ValueError(problem)
    analyst = _Analyst(record.run, recipe, folder, places)
    problems = []
    for name in missing_analyses(record, places):
        try:
            record = analyst.analyze(record, name)
        except (OSError, RuntimeError, ValueError) as error:
            problems.append(f"{name}: {error}")
        else:
            yield record
    if problems:
        raise ValueError(f"could not be analyzed: {'; '.join(problems)}")


class _Analyst:
    """Measures one model."""

    def __init__(self, run: Run, recipe: Recipe, folder: Path, places: Places) -> None:
        self._run = run
        self._recipe = recipe
        self._places = places
        self._translator = Translator.load(folder / MODEL)

    def analyze(self, record: RunRecord, name: str) -> RunRecord:
        """The record with one more analysis."""
        update: dict[str, object]
        if name == "attention":
            update = {"attention": self._attention()}
        elif name == PLANTED:
            update = {"rankings": {**record.rankings, name: self._rank_planted()}}
        elif name == PEOPLE:
            update = {"rankings": {**record.rankings, name: self._rank_labelled()}}
        else:
            study = self._align(gold_pairs(name, self._run, self._recipe, self._places))
            update = {"alignments": {**record.alignments, name: study}}
        return record.model_copy(update=update)

    def _attention(self) -> ModelAnalysis:
        run = self._run
        pairs = split_pairs(self._recipe, "test")
        has_figures = can_show_examples(run)
        analysis, views = self._analyze(pairs, EXPLORED if has_figures else 0)
        if has_figures:
            noisy = [AnalysisPair.from_texts(*pair.texts) for pair in self._noisy("test")]
            _, noisy_views = self._analyze(noisy[:EXPLORED], EXPLORED)
            write_examples(run, analysis, views, noisy_views, self._places.results)
        return analysis

    def _analyze(
        self, pairs: Sequence[AnalysisPair], keep: int
    ) -> tuple[ModelAnalysis, list[SentenceView]]:
        return analyze_model(
            self._translator.model,
            self._translator.tokenizers,
            pairs,
            name=self._run.name,
            keep=spread(keep, len(pairs)) if keep else (),
        )

    def _align(self, pairs: Sequence[AnalysisPair]) -> AlignmentStudy:
        links = count_pair_links(self._translator.model, self._translator.tokenizers, pairs)
        return AlignmentStudy(
            result=links["ignored"].result,
            estimates={end: bootstrap_alignment(one) for end, one in links.items()},
            gold_digest=gold_digest(pairs),
        )

    def _rank_planted(self) -> QualityRanking:
        """Rank the noisy test set; heads are chosen on the noisy validation set."""
        valid, test = self._noisy("valid"), self._noisy("test")
        choosing = np.arange(len(valid) + len(test)) < len(valid)
        return self._rank([*valid, *test], choosing)

    def _noisy(self, split: Split) -> list[LabelledPair]:
        """A split with planted noise, the same every time."""
        texts = [(pair.source, pair.target) for pair in split_pairs(self._recipe, split)]
        return list(plant_text_noise(texts, seed=NOISE_SEED))

    def _rank_labelled(self) -> QualityRanking:
        """Rank pairs labelled by people; heads are chosen on every other pair."""
        pairs = list(read_labelled_pairs(self._places.data / PARACRAWL))
        choosing = np.arange(len(pairs)) % 2 == 0
        return self._rank(pairs, choosing, good=GOOD, bad=BAD)

    def _rank(
        self,
        pairs: Sequence[LabelledPair],
        choosing: npt.NDArray[np.bool_],
        *,
        good: Sequence[str] = (CLEAN,),
        bad: Sequence[str] | None = None,
    ) -> QualityRanking:
        model, tokenizer = self._translator.model, self._translator.tokenizers
        scores = score_pairs(model, tokenizer, [pair.texts for pair in pairs])
        labels = [pair.label for pair in pairs]
        given = [pair.score for pair in pairs if pair.score is not None]
        return rank_quality(
            scores, labels, choosing=choosing, good=good, bad=bad, given=given or None
        )

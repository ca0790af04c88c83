"""What is measured of a trained model, besides its translations."""

from pathlib import Path

from relakit.analysis import AnalysisPair, analyze_model, generated_gold_pair
from relakit.data.generated import Split, generate_pairs
from relakit.data.parallel_files import read_pairs
from relakit.data.text_folder import find_splits
from relakit.decode.translator import Translator
from relakit.reproduce.places import Places
from relakit.reproduce.records import RunRecord
from relakit.train.recipe import Recipe
from relakit.train.run_folder import MODEL


def analyze_run(record: RunRecord, recipe: Recipe, folder: Path, places: Places) -> RunRecord:
    """The record with all numbers of the model in the run's folder."""
    translator = Translator.load(folder / MODEL)
    pairs = split_pairs(recipe, "test")
    analysis, _ = analyze_model(translator.model, translator.tokenizer, pairs, name=record.run.name)
    return record.model_copy(update={"attention": analysis})


def split_pairs(recipe: Recipe, split: Split) -> list[AnalysisPair]:
    """The pairs of a split, as text; those of the generated corpus with gold links and tags."""
    data = recipe.data
    if data.generated is not None:
        count: int = getattr(data.generated, split)
        pairs = generate_pairs(count, seed=data.generated.seed, split=split)
        return [generated_gold_pair(pair) for pair in pairs]
    assert data.folder is not None
    files = find_splits(data.folder, data.source, data.target)[split]
    return [AnalysisPair.from_texts(*texts) for texts in read_pairs(files)]

"""The sentence pairs of a recipe's corpus, as text."""

from relakit.analysis import AnalysisPair, generated_gold_pair
from relakit.data.generated import Split, generate_pairs
from relakit.data.parallel_files import read_pairs
from relakit.data.text_folder import find_splits
from relakit.train.recipe import Recipe


def split_pairs(recipe: Recipe, split: Split) -> list[AnalysisPair]:
    """The pairs of a split; those of the generated corpus have gold links and tags."""
    data = recipe.data
    if data.generated is not None:
        count: int = getattr(data.generated, split)
        pairs = generate_pairs(count, seed=data.generated.seed, split=split)
        return [generated_gold_pair(pair) for pair in pairs]
    assert data.folder is not None
    files = find_splits(data.folder, data.source, data.target)[split]
    return [AnalysisPair.from_texts(*texts) for texts in read_pairs(files)]

"""Word alignments to compare attention with: by people, by the generator, or by eflomal."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from relakit.analysis import AnalysisPair, GoldAlignment, read_gold
from relakit.analysis.word_map import join_words
from relakit.data.generated import Split
from relakit.data.parallel_files import ParallelFiles, read_pairs
from relakit.reproduce.corpora import Corpus
from relakit.reproduce.eflomal import eflomal_links
from relakit.reproduce.split_pairs import split_pairs
from relakit.train.recipe import Recipe

RWTH: Final = "alignment-rwth-de-en"
"""The folder of the paper's gold set, in the data folder: German-English, 508 pairs."""
RWTH_FILES: Final = "test.{}.gz"
_LEARNED: Final[tuple[Split, ...]] = ("train", "valid")


def rwth_pairs(data: Path, corpus: Corpus) -> list[AnalysisPair]:
    """The paper's gold set in the direction of a German and English corpus.

    Its words are separated by spaces. The models have learnt from ordinary text, so the words are
    joined into that.
    """
    folder = data / RWTH
    source, target, talp = (
        folder / RWTH_FILES.format(name) for name in (corpus.source, corpus.target, "talp")
    )
    texts = list(read_pairs(ParallelFiles(source, target)))
    links = list(read_gold(talp, format="talp"))
    if len(links) != len(texts):
        raise ValueError(
            f"{source} has {len(texts):,} lines, {talp} has {len(links):,}: each must be about one "
            "sentence pair"
        )
    if corpus.source == "en":  # the file names the German word first
        links = [one.reversed() for one in links]
    return [_joined(*text, gold) for text, gold in zip(texts, links, strict=True)]


def _joined(source: str, target: str, gold: GoldAlignment) -> AnalysisPair:
    source_text, source_words = join_words(source.split())
    target_text, target_words = join_words(target.split())
    return AnalysisPair(source_text, target_text, source_words, target_words, gold)


def gold_digest(pairs: Sequence[AnalysisPair]) -> str:
    """A digest of texts and gold links: error rates are comparable where it is the same."""
    digest = hashlib.sha256()
    for pair in pairs:
        assert pair.gold is not None
        links = [sorted(pair.gold.sure), sorted(pair.gold.possible)]
        digest.update(json.dumps([pair.source, pair.target, *links]).encode())
    return digest.hexdigest()


def silver_pairs(recipe: Recipe, cache: Path) -> list[AnalysisPair]:
    """The test set with eflomal's links, found on all pairs of the corpus together.

    Links found in both directions are sure, those found in one direction possible.

    Args:
        recipe: the recipe whose corpus to align.
        cache: a folder for the links.
    """
    test = split_pairs(recipe, "test")
    others = (pair for split in _LEARNED for pair in split_pairs(recipe, split))
    return [
        replace(pair, gold=GoldAlignment(a.forward & a.reverse, a.forward | a.reverse))
        for pair, a in zip(test, eflomal_links(others, test, cache), strict=True)
    ]

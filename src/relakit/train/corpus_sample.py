"""What a recipe trains on, or a sample of it in memory: nothing is written."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from relakit.data.generated import generate_pairs
from relakit.data.parallel_files import ParallelFiles, read_pairs
from relakit.data.prepared_format import SplitCounts
from relakit.data.prepared_reader import EncodedSide, EncodedSplit, PreparedCorpus
from relakit.data.text_folder import find_splits
from relakit.data.tokenizer import Tokenizer, learn_tokenizer
from relakit.train.recipe import DataSection, Recipe
from relakit.train.starting_model import starting_tokenizer

SAMPLE_PAIRS: Final = 20_000
"""Enough to know the lengths of sentences; a tokenizer learns from them in seconds."""


@dataclass(frozen=True)
class CorpusSample:
    """Sentence pairs to train on, and how many there are in all."""

    split: EncodedSplit
    pairs: int
    """In the whole corpus, before those are left out that are empty or too long."""
    tokenizer: Tokenizer
    """That the pairs are encoded with."""
    vocabulary: int
    """Tokens of the tokenizer; those asked for, if it is to be learned from the whole corpus."""

    @property
    def scale(self) -> float:
        """How many times as large the corpus is."""
        return self.pairs / self.split.counts.read

    @property
    def is_whole(self) -> bool:
        return self.split.counts.read == self.pairs


def sample_corpus(recipe: Recipe) -> CorpusSample:
    """The prepared corpus of a recipe; of text, a sample spread evenly, with a tokenizer for it.

    Raises:
        ValueError: says what is wrong with the corpus.
    """
    data = recipe.data
    if data.prepared is not None:
        corpus = PreparedCorpus.load(data.prepared, reverse=data.reverse)
        return CorpusSample(
            corpus.train, corpus.train.counts.read, corpus.tokenizer, corpus.tokenizer.size
        )
    total, pairs = _text(data)
    if data.reverse:
        pairs = [(target, source) for source, target in pairs]
    path = starting_tokenizer(recipe)
    if path is not None:
        tokenizer = Tokenizer.load(path)
    else:
        tokenizer = learn_tokenizer(chain.from_iterable(pairs), data.vocab_size)
    is_whole = path is not None or len(pairs) == total
    vocabulary = tokenizer.size if is_whole else data.vocab_size
    return CorpusSample(_encoded(pairs, tokenizer, data), total, tokenizer, vocabulary)


def _text(data: DataSection) -> tuple[int, list[tuple[str, str]]]:
    """How many pairs there are, and some of them."""
    if data.generated is not None:
        total, seed = data.generated.train, data.generated.seed
        generated = generate_pairs(min(total, SAMPLE_PAIRS), seed=seed)
        return total, [(pair.source_text, pair.target_text) for pair in generated]
    assert data.folder is not None, "a recipe has one place for its data"
    files = find_splits(data.folder, data.source, data.target)["train"]
    total = sum(1 for _ in read_pairs(files))
    return total, list(_spread(files, total))


def _spread(files: ParallelFiles, total: int) -> Iterator[tuple[str, str]]:
    """At most `SAMPLE_PAIRS` pairs, evenly over the files."""
    wanted, taken = min(total, SAMPLE_PAIRS), 0
    for number, pair in enumerate(read_pairs(files)):
        if taken * total <= number * wanted and taken < wanted:
            taken += 1
            yield pair


def _encoded(pairs: list[tuple[str, str]], tokenizer: Tokenizer, data: DataSection) -> EncodedSplit:
    """The pairs as `prepare` would encode them."""
    sides = [tokenizer.encode_batch([pair[side] for pair in pairs]) for side in (0, 1)]
    longest = data.max_tokens
    filled = [(s, t) for s, t in zip(*sides, strict=True) if s and t]
    is_short = [max(len(s), len(t)) <= longest for s, t in filled]
    if data.long_sentences == "truncate":
        kept = [(s[:longest], t[:longest]) for s, t in filled]
    else:
        kept = [pair for pair, short in zip(filled, is_short, strict=True) if short]
    if not kept:
        raise ValueError(
            f"no pair of train is left: {len(pairs) - len(filled):,} have an empty side and "
            f"{is_short.count(False):,} have more than {longest:,} tokens"
        )
    source, target = (_side([pair[side] for pair in kept]) for side in (0, 1))
    counts = SplitCounts(
        read=len(pairs),
        kept=len(kept),
        empty=len(pairs) - len(filled),
        overlong=is_short.count(False),
        source_tokens=len(source.tokens),
        target_tokens=len(target.tokens),
    )
    return EncodedSplit("train", source, target, np.arange(1, len(kept) + 1), counts)


def _side(sentences: list[list[int]]) -> EncodedSide:
    lengths = [0, *map(len, sentences)]
    tokens = np.fromiter(chain.from_iterable(sentences), dtype=np.int64, count=sum(lengths))
    return EncodedSide(tokens, np.cumsum(lengths, dtype=np.int64))

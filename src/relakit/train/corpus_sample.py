"""What a recipe trains on, or a sample of it in memory; writes nothing."""

from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from relakit.data.generated import LANGUAGES, generate_pairs
from relakit.data.pair_encoder import PairEncoder
from relakit.data.parallel_files import read_pairs, spread_evenly
from relakit.data.prepared_reader import EncodedSide, EncodedSplit, PreparedCorpus
from relakit.data.text_folder import find_splits
from relakit.data.tokenizer import learn_tokenizer
from relakit.data.tokenizer_pair import Tokenizers, learn_tokenizers, load_tokenizers
from relakit.train.recipe import DataSection, Recipe

SAMPLE_PAIRS: Final = 20_000
"""Enough to know how long sentences are; a tokenizer learns from that many in seconds."""


@dataclass(frozen=True)
class CorpusSample:
    """Sentence pairs to train on, and how many there are in all."""

    split: EncodedSplit
    pairs: int
    """Pairs in the whole corpus, before the empty and the too long ones are left out."""
    tokenizers: Tokenizers
    """What the pairs are encoded with."""
    vocabularies: tuple[int, int | None]
    """Sizes of the target's or shared vocabulary, and of the source's if it has its own; the sizes
    asked for, if the vocabularies are still to be learned from the whole corpus."""

    @property
    def scale(self) -> float:
        """How many times as large as the sample the corpus is."""
        return self.pairs / self.split.counts.read

    @property
    def is_whole(self) -> bool:
        return self.split.counts.read == self.pairs


def sample_corpus(recipe: Recipe) -> CorpusSample:
    """A recipe's prepared corpus, or an evenly spread sample of its text with a tokenizer for it.

    Raises:
        ValueError: the corpus cannot be used; says why.
    """
    data = recipe.data
    if data.prepared is not None:
        corpus = PreparedCorpus.load(data.prepared, reverse=data.reverse)
        tokenizers = corpus.tokenizers
        return CorpusSample(corpus.train, corpus.train.counts.read, tokenizers, tokenizers.sizes)
    total, pairs = _text(data)
    if data.reverse:
        pairs = [(target, source) for source, target in pairs]
    if recipe.model.start_from is not None:
        tokenizers = load_tokenizers(recipe.model.start_from)
        return CorpusSample(_encoded(pairs, tokenizers, data), total, tokenizers, tokenizers.sizes)
    tokenizers = learn_tokenizers(
        data.vocabulary,
        lambda sides: learn_tokenizer(
            chain.from_iterable(pair[sides] for pair in pairs), data.vocab_size
        ),
    )
    sizes = tokenizers.sizes
    if len(pairs) < total:
        sizes = data.vocab_size, None if sizes[1] is None else data.vocab_size
    return CorpusSample(_encoded(pairs, tokenizers, data), total, tokenizers, sizes)


def _text(data: DataSection) -> tuple[int, list[tuple[str, str]]]:
    """How many pairs there are, and some of them."""
    if data.generated is not None:
        total, seed = data.generated.train, data.generated.seed
        generated = generate_pairs(min(total, SAMPLE_PAIRS), seed=seed)
        pairs = [(pair.source_text, pair.target_text) for pair in generated]
        asked = (data.source, data.target)
        if asked == LANGUAGES[::-1]:
            pairs = [(german, english) for english, german in pairs]
        elif asked != LANGUAGES:
            raise ValueError(
                f"a generated corpus has {' and '.join(LANGUAGES)}, not {' and '.join(asked)}; "
                "set data.source and data.target"
            )
        return total, pairs
    assert data.folder is not None, "a recipe has one place for its data"
    files = find_splits(data.folder, data.source, data.target)["train"]
    total = sum(1 for _ in read_pairs(files))
    return total, list(spread_evenly(read_pairs(files), total, SAMPLE_PAIRS))


def _encoded(
    pairs: list[tuple[str, str]], tokenizers: Tokenizers, data: DataSection
) -> EncodedSplit:
    """The pairs as `prepare` would encode them."""
    truncates = data.long_sentences == "truncate"
    encoder = PairEncoder(tokenizers, data.max_tokens, truncates=truncates)
    kept = encoder.encode(pairs)
    return EncodedSplit(
        "train",
        _side(kept.sources),
        _side(kept.targets),
        np.array(kept.numbers),
        encoder.counts("train"),
    )


def _side(sentences: list[list[int]]) -> EncodedSide:
    lengths = [0, *map(len, sentences)]
    tokens = np.fromiter(chain.from_iterable(sentences), dtype=np.int64, count=sum(lengths))
    return EncodedSide(tokens, np.cumsum(lengths, dtype=np.int64))

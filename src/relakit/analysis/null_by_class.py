"""Cross-attention null rates by the class of the word just written (Figure 7)."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from relakit.analysis.attention_pass import AttentionBatch
from relakit.analysis.rates import layer_values
from relakit.analysis.results import ClassNullRates
from relakit.analysis.sparsity import null_queries
from relakit.analysis.tags import BEGIN_CLASS
from relakit.analysis.word_map import NO_WORD, Integers
from relakit.model import ModelConfig


def query_classes(token_words: Integers, classes: Sequence[str]) -> list[str | None]:
    """For each step of the decoder, the class of the word that has just been finished.

    Args:
        token_words: the word of each target token, as `words_of_tokens` returns it.
        classes: the class of each target word.

    Returns:
        One more than there are tokens: the first step has `BEGIN_CLASS`; a step in the middle of a
        word, or after a token that belongs to no word, has None.
    """
    found: list[str | None] = [None] * (len(token_words) + 1)
    last_tokens = {word: token for token, word in enumerate(token_words.tolist())}
    for word, token in last_tokens.items():
        if word != NO_WORD:
            found[token + 1] = classes[word]
    found[0] = BEGIN_CLASS
    return found


class ClassTotals:
    """The totals that `ClassNullRates` is computed from; they grow with the number of classes."""

    def __init__(self, config: ModelConfig) -> None:
        self._shape = config.decoder_layers, config.heads
        self._ids: dict[str, int] = {}
        self._counts: list[int] = []
        self._null: list[Tensor] = []
        """Null queries of each class, ``[layers, heads]``"""

    def add(self, batch: AttentionBatch, classes: Sequence[Sequence[str | None]]) -> None:
        """Add a batch, with the class of each query of each pair (see `query_classes`)."""
        places = [
            (pair, query, self._id(name))
            for pair, names in enumerate(classes)
            for query, name in enumerate(names)
            if name is not None
        ]
        pairs, queries, ids = torch.tensor(places).T
        for index, count in enumerate(ids.bincount(minlength=len(self._ids)).tolist()):
            self._counts[index] += count
        valid = batch.valid("cross")
        for layer, weights in enumerate(batch.layers["cross"]):
            null = null_queries(weights, valid)[pairs, :, queries]  # [places, heads]
            totals = torch.zeros(len(self._ids), null.size(1), dtype=torch.int64)
            totals.index_add_(0, ids, null.long())
            for index, total in enumerate(totals):
                self._null[index][layer] += total

    def _id(self, name: str) -> int:
        if name not in self._ids:
            self._ids[name] = len(self._ids)
            self._counts.append(0)
            self._null.append(torch.zeros(self._shape, dtype=torch.int64))
        return self._ids[name]

    def result(self, origin: Literal["tags", "token classes"]) -> ClassNullRates:
        names = sorted(self._ids, key=lambda name: (-self._counts[self._ids[name]], name))
        order = [self._ids[name] for name in names]
        counts = [self._counts[index] for index in order]
        null = torch.stack([self._null[index] for index in order], dim=-1)
        rates = null.double() / torch.tensor(counts)  # [layers, heads, classes]
        return ClassNullRates(
            origin=origin,
            classes=tuple(names),
            counts=tuple(counts),
            null_rate=tuple(tuple(layer_values(head) for head in layer) for layer in rates),
        )

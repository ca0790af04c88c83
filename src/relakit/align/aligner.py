"""`Aligner`: links sentence pairs by what a model attends to under forced decoding."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import torch

from relakit.align.alignment import (
    Alignment,
    TokenWords,
    join_directions,
    read_alignment,
    read_layer_alignment,
    read_mutual_links,
)
from relakit.align.choice import AlignmentChoice
from relakit.align.directions import check_opposite_languages
from relakit.align.independence import is_same_alone
from relakit.align.layer import AlignmentLayer, load_layer
from relakit.align.layer_files import has_layer, heads_or_layer
from relakit.align.settings import Level, Symmetrization
from relakit.analysis.attention_pass import attention_batches, cross_attention_of
from relakit.analysis.gold import GoldAlignment
from relakit.analysis.links import READINGS, EndWeight
from relakit.analysis.long_pairs import longest_in_matrices
from relakit.analysis.pair_batches import EncodedPair, EncodedPairs, TokenPair
from relakit.analysis.pairs import AnalysisPair
from relakit.analysis.settings import BATCH_TOKENS
from relakit.analysis.word_map import Floats
from relakit.broken_model import blamed_on
from relakit.data.tokenizer_pair import Tokenizers
from relakit.decode.long_lines import default_max_tokens, has_at_most
from relakit.decode.settings import DEVICE, known_device
from relakit.model import ModelAbout, Transformer
from relakit.model.description import read_description
from relakit.model.directory import build_model
from relakit.nn.arguments import check_usable

WINDOW: Final = 2000
"""How many pairs are read before they are computed."""
Read = TypeVar("Read")


class Aligner:
    """Aligns sentence pairs with a translation model.

    The links of a pair depend only on that pair, the model, and its layer or the choice of heads,
    not on the pairs beside it: bit for bit if `is_same_alone`, with one thread.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizers,
        choice: AlignmentChoice | None = None,
        *,
        layer: AlignmentLayer | None = None,
        about: ModelAbout | None = None,
        level: Level = "word",
        max_tokens: int | None = None,
        name: str = "the model",
    ) -> None:
        """Use a model that is in memory; `Aligner.load` reads one from disk.

        Args:
            model: translates from source to target.
            tokenizer: its tokenizer, or a pair of tokenizers if each language has its own.
            choice: which heads are read; `relakit.align.select` finds the best ones. Not needed
                with a layer.
            layer: gives the links, instead of the model's own attention.
            about: what the model's directory says about it.
            level: what is linked.
            max_tokens: most tokens on a side; None: as many as can be translated, and as fit into
                256 MiB of one layer's attention weights.
            name: what errors call the model.

        Raises:
            ValueError: there is neither a choice nor a layer, or they do not fit the model.
        """
        model.config.check_tokenizer(tokenizer)
        self.model = model
        self.tokenizers = tokenizer
        self.about = about or ModelAbout()
        if choice is None and layer is None:
            raise ValueError("links are read from heads or from a layer: give a choice or a layer")
        if choice is not None:
            choice.check(model.config, "the choice of heads")
        self.choice = choice
        self.layer = layer
        self.name = name
        self.level = level
        self.max_tokens = most_tokens(model, self.about) if max_tokens is None else max_tokens

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        choice: AlignmentChoice | None = None,
        use_layer: bool = True,
        level: Level = "word",
        max_tokens: int | None = None,
        device: torch.device | str = DEVICE,
    ) -> "Aligner":
        """Read a model directory, with its alignment layer if it has one.

        Args:
            folder: the directory.
            choice: heads to read instead of those that were chosen for the model.
            use_layer: False: ignore the layer and read heads.
            level: what is linked.
            max_tokens: as for `Aligner`.
            device: where to compute.

        Raises:
            ValueError: there is no layer to use, and no heads were chosen yet.
        """
        known_device(str(device))
        check_usable(device)
        folder = Path(folder)
        described = read_description(folder)
        described.check_tokenizers()
        if choice is None:
            choice, with_layer = heads_or_layer(folder, described.config, use_layer=use_layer)
        else:
            with_layer = use_layer and has_layer(folder)
        model, about = build_model(described, device=device)
        return cls(
            model,
            described.tokenizers,
            choice,
            layer=load_layer(folder, model)[0] if with_layer else None,
            about=about,
            level=level,
            max_tokens=max_tokens,
            name=str(folder),
        )

    def is_same_alone(self) -> bool:
        """Whether pairs give bit-identical results alone and in a batch on this processor."""

        def compute(pairs: Sequence[TokenPair], batch_tokens: int) -> dict[int, list[Floats]]:
            return {index: [weights] for index, weights in self._weights(pairs, batch_tokens)}

        with blamed_on(self.name):
            return is_same_alone(self.model.config, compute)

    def fits(self, pair: AnalysisPair) -> bool:
        """Whether neither side has more than ``max_tokens`` tokens."""
        return fits_into(self.tokenizers, pair, self.max_tokens)

    def align(
        self, pairs: Iterable[AnalysisPair], *, batch_tokens: int = BATCH_TOKENS
    ) -> Iterator[Alignment]:
        """The alignment of each pair, in order. Pairs are read as they are needed.

        A pair with no words on a side gets no links, nor does one that does not fit (`fits`).
        """
        remaining = iter(pairs)
        while window := list(islice(remaining, WINDOW)):
            found = self._read(window, self._links, batch_tokens)
            for pair, alignment in zip(window, found, strict=True):
                yield Alignment({}, *self._counts(pair)) if alignment is None else alignment

    def mutual_links(self, pairs: Iterable[AnalysisPair]) -> Iterator[GoldAlignment]:
        """For each pair, in order, the links that attention supports in both directions.

        See `read_mutual_links`. These are links between words, whatever the level.
        """
        remaining = iter(pairs)
        while window := list(islice(remaining, WINDOW)):
            for links in self._read(window, self._mutual, BATCH_TOKENS):
                yield GoldAlignment(frozenset()) if links is None else links

    def _read(
        self,
        pairs: Sequence[AnalysisPair],
        read: Callable[[Floats, EncodedPair], Read],
        batch_tokens: int,
    ) -> list[Read | None]:
        """What ``read`` makes of each pair's weights; None for pairs that cannot be computed."""
        results: list[Read | None] = [None] * len(pairs)
        numbers = [
            number for number, pair in enumerate(pairs) if pair.has_words and self.fits(pair)
        ]
        encoded = EncodedPairs(self.tokenizers)
        tokens = encoded.read(pairs[number] for number in numbers)
        with blamed_on(self.name):
            for index, weights in self._weights(tokens, batch_tokens):
                results[numbers[index]] = read(weights, encoded.take(index))
        return results

    def _weights(
        self, tokens: Iterable[TokenPair], batch_tokens: int
    ) -> Iterator[tuple[int, Floats]]:
        """The number of each pair, and its ``[target tokens + 1, source tokens + 1]`` weights."""
        if self.layer is not None:
            yield from self.layer.weights(
                self.model, tokens, batch_tokens=batch_tokens, window=WINDOW
            )
            return
        assert self.choice is not None
        batches = attention_batches(
            self.model,
            tokens,
            kinds=("cross",),
            cross_layer=self.choice.layer,
            batch_tokens=batch_tokens,
            window=WINDOW,
        )
        for batch in batches:
            for attention in cross_attention_of(batch):
                yield attention.index, attention.weights[0, list(self.choice.heads)].mean(0)

    @property
    def _heads(self) -> AlignmentChoice | None:
        """The heads to read; None if the layer is read instead."""
        return self.choice if self.layer is None else None

    @property
    def _shift(self) -> int:
        """0 if row t of the weights belongs to target token t, 1 if row t + 1 does."""
        return 0 if self._heads is None else READINGS.index(self._heads.reading)

    @property
    def _end(self) -> EndWeight:
        """The effect of weight on the source's end-of-sentence token."""
        return "ignored" if self._heads is None else self._heads.end

    def align_tokens(
        self, pairs: Iterable[TokenPair], words: Sequence[TokenWords]
    ) -> Iterator[tuple[int, Alignment]]:
        """Align pairs of known tokens: the number of each pair and its alignment, not in order.

        Args:
            pairs: token ids of pairs that fit.
            words: the words that each pair's tokens belong to.
        """
        with blamed_on(self.name):
            for index, weights in self._weights(pairs, BATCH_TOKENS):
                yield index, self._read_links(weights, words[index])

    def _links(self, weights: Floats, pair: EncodedPair) -> Alignment:
        return self._read_links(weights, self._words(pair))

    def _read_links(self, weights: Floats, words: TokenWords) -> Alignment:
        if self._heads is None:
            return read_layer_alignment(weights, words)
        return read_alignment(weights, words, shift=self._shift, end=self._end)

    def _mutual(self, weights: Floats, pair: EncodedPair) -> GoldAlignment:
        return read_mutual_links(weights, _token_words(pair), shift=self._shift, end=self._end)

    def _words(self, pair: EncodedPair) -> TokenWords:
        if self.level == "token":
            source, target = len(pair.source_spans), len(pair.target_spans)
            return TokenWords(np.arange(source), np.arange(target), source, target)
        return _token_words(pair)

    def _counts(self, pair: AnalysisPair) -> tuple[int, int]:
        """How many words, or tokens, source and target have."""
        if self.level == "word":
            return len(pair.source_words), len(pair.target_words)
        target = pair.target_tokens or self.tokenizers.target.encode(pair.target)
        return len(self.tokenizers.source.encode(pair.source).ids), len(target.ids)


def _token_words(pair: EncodedPair) -> TokenWords:
    return TokenWords(
        pair.source_words,
        pair.target_words,
        len(pair.pair.source_words),
        len(pair.pair.target_words),
    )


def most_tokens(model: Transformer, about: ModelAbout) -> int:
    """Most tokens on a side: what can be translated, and 256 MiB of one layer's attention."""
    return min(default_max_tokens(about.longest_sentence), longest_in_matrices(model.config.heads))


def fits_into(tokenizers: Tokenizers, pair: AnalysisPair, max_tokens: int) -> bool:
    """Whether neither side of a pair has more than ``max_tokens`` tokens."""
    if pair.target_tokens is not None and len(pair.target_tokens.ids) > max_tokens:
        return False
    return has_at_most(tokenizers.source, pair.source, max_tokens) and (
        pair.target_tokens is not None or has_at_most(tokenizers.target, pair.target, max_tokens)
    )


class TwoWayAligner:
    """Aligns with two models, one for each direction, and combines their links."""

    def __init__(self, forward: Aligner, backward: Aligner, method: Symmetrization) -> None:
        """Combine two aligners.

        Args:
            forward: from source to target.
            backward: from target to source.
            method: see `Symmetrization`.

        Raises:
            ValueError: they do not align in opposite directions, or their tokens differ.
        """
        check_opposite(forward, backward)
        self.forward = forward
        self.backward = backward
        self.method = method

    def fits(self, pair: AnalysisPair) -> bool:
        """Whether the pair fits both models."""
        return self.forward.fits(pair) and self.backward.fits(pair.reversed())

    def align(
        self, pairs: Iterable[AnalysisPair], *, batch_tokens: int = BATCH_TOKENS
    ) -> Iterator[Alignment]:
        """Like `Aligner.align`; a pair must fit both models."""
        remaining = iter(pairs)
        while window := list(islice(remaining, WINDOW)):
            directions = zip(
                self.forward.align(window, batch_tokens=batch_tokens),
                self.backward.align(
                    [pair.reversed() for pair in window], batch_tokens=batch_tokens
                ),
                strict=True,
            )
            for pair, (forward, backward) in zip(window, directions, strict=True):
                if self.fits(pair):
                    yield join_directions(forward, backward, self.method)
                else:
                    yield Alignment({}, forward.source_count, forward.target_count)


def check_opposite(forward: Aligner, backward: Aligner) -> None:
    """Raise ValueError if the models do not translate in opposite directions, as far as known.

    Tokens can only be linked if both also have the same tokenizer.
    """
    check_opposite_languages(forward.about, backward.about)
    if forward.level != "token":
        return
    here, other_way = forward.tokenizers, backward.tokenizers
    if (
        here.source.to_json() != other_way.target.to_json()
        or here.target.to_json() != other_way.source.to_json()
    ):
        raise ValueError(
            "links of tokens need two models with the same tokenizer, and these have different "
            "ones; link words instead, or train both on one prepared corpus"
        )

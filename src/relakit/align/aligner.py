"""`Aligner`: from sentence pairs to links, by a model's cross-attention under forced decoding."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import torch

from relakit.align.alignment import Alignment, TokenWords, join_directions, read_alignment
from relakit.align.choice import AlignmentChoice, required_choice
from relakit.align.settings import Level, Symmetrization
from relakit.analysis.attention_pass import attention_batches, cross_attention_of
from relakit.analysis.links import READINGS
from relakit.analysis.long_pairs import longest_pair
from relakit.analysis.pair_batches import BATCH_TOKENS, EncodedPair, EncodedPairs
from relakit.analysis.pairs import AnalysisPair
from relakit.data.tokenizer_pair import Tokenizers
from relakit.decode.long_lines import default_max_tokens, has_at_most
from relakit.decode.settings import DEVICE, known_device
from relakit.model import ModelAbout, Transformer
from relakit.model.description import read_description
from relakit.model.directory import build_model
from relakit.nn.arguments import check_usable

WINDOW: Final = 2000
"""Pairs that are read before they are computed."""


class Aligner:
    """Aligns sentence pairs with a translation model.

    What a pair gives depends on that pair and the model alone, not on the pairs beside it.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizers,
        choice: AlignmentChoice,
        *,
        about: ModelAbout | None = None,
        level: Level = "word",
        max_tokens: int | None = None,
    ) -> None:
        """Make one of a model that is in memory; `Aligner.load` reads it.

        Args:
            model: from source to target.
            tokenizer: its tokenizer, or the pair of them if each language has its own.
            choice: where links are read; `relakit.align.select` finds the best place.
            about: what its directory tells of the model.
            level: what is linked.
            max_tokens: of a side, at most; None: as many as can be translated, and as fit into
                256 MiB of attention weights.
        """
        model.config.check_tokenizer(tokenizer)
        self.model = model
        self.tokenizers = tokenizer
        self.about = about or ModelAbout()
        choice.check(model.config, "the choice of heads")
        self.choice = choice
        self.level = level
        most = min(default_max_tokens(self.about.longest_sentence), longest_pair(model.config))
        self.max_tokens = most if max_tokens is None else max_tokens

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        choice: AlignmentChoice | None = None,
        level: Level = "word",
        max_tokens: int | None = None,
        device: torch.device | str = DEVICE,
    ) -> "Aligner":
        """Read a model directory, and what was chosen for it unless ``choice`` is given.

        Raises:
            ValueError: nothing was chosen yet.
        """
        known_device(str(device))
        check_usable(device)
        described = read_description(folder)
        described.check_tokenizers()
        choice = choice or required_choice(folder, described.config)
        model, about = build_model(described, device=device)
        return cls(
            model,
            described.tokenizers,
            choice,
            about=about,
            level=level,
            max_tokens=max_tokens,
        )

    def fits(self, pair: AnalysisPair) -> bool:
        """Whether no side has more than ``max_tokens`` tokens."""
        if pair.target_tokens is not None and len(pair.target_tokens.ids) > self.max_tokens:
            return False
        return has_at_most(self.tokenizers.source, pair.source, self.max_tokens) and (
            pair.target_tokens is not None
            or has_at_most(self.tokenizers.target, pair.target, self.max_tokens)
        )

    def align(
        self, pairs: Iterable[AnalysisPair], *, batch_tokens: int = BATCH_TOKENS
    ) -> Iterator[Alignment]:
        """The alignment of each pair, in order. Pairs are read as they are needed.

        A pair without a word on a side has no links; nor has one that does not fit (`fits`).
        """
        remaining = iter(pairs)
        while window := list(islice(remaining, WINDOW)):
            yield from self._window(window, batch_tokens)

    def _window(self, pairs: Sequence[AnalysisPair], batch_tokens: int) -> list[Alignment]:
        alignments = [Alignment({}, len(p.source_words), len(p.target_words)) for p in pairs]
        numbers = [
            number
            for number, pair in enumerate(pairs)
            if pair.source_words and pair.target_words and self.fits(pair)
        ]
        encoded = EncodedPairs(self.tokenizers)
        batches = attention_batches(
            self.model,
            encoded.read(pairs[number] for number in numbers),
            kinds=("cross",),
            cross_layer=self.choice.layer,
            batch_tokens=batch_tokens,
            window=WINDOW,
        )
        for batch in batches:
            for attention in cross_attention_of(batch):
                words = self._words(encoded.take(attention.index))
                alignments[numbers[attention.index]] = read_alignment(
                    attention.weights[0, list(self.choice.heads)].mean(0),
                    words,
                    shift=READINGS.index(self.choice.reading),
                    end=self.choice.end,
                )
        return alignments

    def _words(self, pair: EncodedPair) -> TokenWords:
        if self.level == "token":
            source, target = len(pair.source_spans), len(pair.target_spans)
            return TokenWords(np.arange(source), np.arange(target), source, target)
        return TokenWords(
            pair.source_words,
            pair.target_words,
            len(pair.pair.source_words),
            len(pair.pair.target_words),
        )


class TwoWayAligner:
    """Aligns with two models, one for each direction, and puts their links together."""

    def __init__(self, forward: Aligner, backward: Aligner, method: Symmetrization) -> None:
        """Put two aligners together.

        Args:
            forward: from source to target.
            backward: from target to source.
            method: see `Symmetrization`.

        Raises:
            ValueError: they are not of opposite directions, or their tokens differ.
        """
        check_opposite(forward, backward)
        self.forward = forward
        self.backward = backward
        self.method = method

    def fits(self, pair: AnalysisPair) -> bool:
        """Whether both models take the pair."""
        return self.forward.fits(pair) and self.backward.fits(exchanged(pair))

    def align(
        self, pairs: Iterable[AnalysisPair], *, batch_tokens: int = BATCH_TOKENS
    ) -> Iterator[Alignment]:
        """As `Aligner.align`; a pair must fit both models."""
        remaining = iter(pairs)
        while window := list(islice(remaining, WINDOW)):
            directions = zip(
                self.forward.align(window, batch_tokens=batch_tokens),
                self.backward.align(map(exchanged, window), batch_tokens=batch_tokens),
                strict=True,
            )
            for pair, (forward, backward) in zip(window, directions, strict=True):
                if self.fits(pair):
                    yield join_directions(forward, backward, self.method)
                else:
                    yield Alignment({}, forward.source_count, forward.target_count)


def exchanged(pair: AnalysisPair) -> AnalysisPair:
    """The pair with source and target exchanged, its gold links too."""
    return AnalysisPair(
        pair.target,
        pair.source,
        pair.target_words,
        pair.source_words,
        None if pair.gold is None else pair.gold.reversed(),
        tokenized=pair.tokenized,
    )


def check_opposite(forward: Aligner, backward: Aligner) -> None:
    """Raise ValueError unless the second model translates in the other direction."""
    there = forward.about.source_language, forward.about.target_language
    back = backward.about.target_language, backward.about.source_language
    for side, one, two in zip(("source", "target"), there, back, strict=True):
        if one is not None and two is not None and one != two:
            other = "target" if side == "source" else "source"
            raise ValueError(
                f"the models must translate in opposite directions, but the {side} language of the "
                f"first is {one!r} and the {other} language of the second is {two!r}; train the "
                "second with relakit train RECIPE --reverse"
            )
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

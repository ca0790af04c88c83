"""`PairScorer`: scores sentence pairs with a model, and optionally one of the other direction."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from relakit.align.choice import AlignmentChoice, read_choice
from relakit.align.independence import is_same_alone
from relakit.align.layer import AlignmentLayer, load_layer
from relakit.align.layer_files import has_layer
from relakit.align.states import StateBatch
from relakit.analysis.attention_pass import AttentionBatch, attention_batches, cross_attention_of
from relakit.analysis.attention_weights import SUM_TO_ONE
from relakit.analysis.long_pairs import longest_pair
from relakit.analysis.pair_batches import TokenPair
from relakit.analysis.pair_scores import SCORED_KINDS
from relakit.analysis.sentence_losses import TokenLosses
from relakit.analysis.settings import BATCH_TOKENS
from relakit.broken_model import blamed_on
from relakit.clean.features import (
    LinkedWords,
    PairFeatures,
    PairSide,
    ReverseView,
    Weights,
    WordLinks,
    check_finite,
    pair_features,
)
from relakit.data.languages import LanguagePair
from relakit.data.parallel_files import NumberedPair
from relakit.data.tokenizer_pair import Tokenizers
from relakit.model import Transformer
from relakit.model.description import read_description
from relakit.model.directory import build_model
from relakit.threads import limited_threads

_Sides: TypeAlias = tuple[PairSide, PairSide]


@dataclass(frozen=True)
class ScoredPair:
    """A pair's number, and its features; None if a side is blank."""

    number: int
    features: PairFeatures | None
    is_cropped: bool = False
    """Whether a side was too long, so that only its beginning was scored."""


@dataclass(frozen=True)
class Direction:
    """A model that translates in one direction, its tokenizers, and its alignment layer."""

    model: Transformer
    tokenizers: Tokenizers
    name: str = "the model"
    """What to call it in errors, such as its folder"""
    layer: AlignmentLayer | None = None

    @classmethod
    def load(cls, folder: Path) -> "Direction":
        """Read a model directory; OSError or ValueError if it is broken."""
        described = read_description(folder)
        described.check_tokenizers()
        model = build_model(described)[0]
        layer = load_layer(folder, model)[0] if has_layer(folder) else None
        return cls(model, described.tokenizers, str(folder), layer)


class PairScorer:
    """Scores pairs; the scores of a pair depend on that pair and the models alone."""

    def __init__(
        self,
        forward: Direction,
        *,
        backward: Direction | None = None,
        choice: AlignmentChoice | None = None,
        languages: LanguagePair | None = None,
        max_tokens: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:
        """Take models that are in memory; `PairScorer.load` reads them from disk.

        Args:
            forward: from source to target.
            backward: from target to source, for dual cross-entropy. If both have an alignment
                layer, its links are also read to find words without support.
            choice: which heads of ``forward`` align, if it has no alignment layer.
            languages: the languages of source and target.
            max_tokens: most tokens on a side; only the beginning of a longer one is scored. None:
                as many as fit into 256 MiB of attention weights.
            batch_tokens: how many padded tokens are computed at once.
        """
        self._forward = forward
        self._backward = backward
        self._choice = choice
        self._languages = languages
        directions = [one for one in (forward, backward) if one is not None]
        self.max_tokens: Final = (
            min(longest_pair(one.model.config, SCORED_KINDS) for one in directions)
            if max_tokens is None
            else max_tokens
        )
        spec = forward.model.config.attention_spec("cross")
        self._sums_to_one = spec.activation in SUM_TO_ONE
        with limited_threads(1):
            self.is_batched: Final = all(
                is_independent_of_batches(one.model, one.layer) for one in directions
            )
        """False if this processor rounds differently in a batch: then pairs are computed alone."""
        self._batch_tokens = batch_tokens if self.is_batched else 1

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        reverse: Path | None = None,
        languages: LanguagePair | None = None,
        max_tokens: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> "PairScorer":
        """Read model directories, and whatever else is stored in ``folder``."""
        forward = Direction.load(folder)
        return cls(
            forward,
            backward=None if reverse is None else Direction.load(reverse),
            choice=read_choice(folder, forward.model.config),
            languages=languages,
            max_tokens=max_tokens,
            batch_tokens=batch_tokens,
        )

    def score(
        self,
        pairs: Sequence[NumberedPair],
        advance: Callable[[int], None] = lambda count: None,
    ) -> list[ScoredPair]:
        """Score pairs, in order; ``advance`` is called with how many more are done."""
        scored = [ScoredPair(pair.number, None) for pair in pairs]
        places = [place for place, pair in enumerate(pairs) if not pair.has_blank_side]
        chosen = [pairs[place] for place in places]
        advance(len(pairs) - len(chosen))
        with limited_threads(1):  # with several threads, sums depend on how many there are
            backward = self._backward_views(chosen)
            tokenizers = self._forward.tokenizers
            sides = [self._encode(tokenizers, *pair.texts) for pair in chosen]
            layer = self._forward.layer
            for batch in self._batches(self._forward, sides, states=layer is not None):
                links = layer_links(layer, batch)
                for index, weights, tokens in _by_pair(batch):
                    source, target = sides[index]
                    with blamed_on(self._forward.name):
                        features = pair_features(
                            chosen[index],
                            source,
                            target,
                            weights,
                            tokens.losses.numpy(),
                            tokens.margins.numpy(),
                            choice=self._choice,
                            links=links.get(index),
                            sums_to_one=self._sums_to_one,
                            reverse=backward[index],
                            languages=self._log_odds(chosen[index]),
                        )
                    is_cropped = source.is_cropped or target.is_cropped
                    scored[places[index]] = ScoredPair(chosen[index].number, features, is_cropped)
                advance(len(batch.indices))
        return scored

    def _encode(self, tokenizers: Tokenizers, source: str, target: str) -> _Sides:
        return (
            PairSide.of(tokenizers.source, source, self.max_tokens),
            PairSide.of(tokenizers.target, target, self.max_tokens),
        )

    def _batches(
        self,
        direction: Direction,
        sides: Sequence[_Sides],
        *,
        cross_layer: int | None = None,
        states: bool,
    ) -> Iterator[AttentionBatch]:
        return attention_batches(
            direction.model,
            [(source.ids, target.ids) for source, target in sides],
            kinds=SCORED_KINDS,
            losses=True,
            cross_layer=cross_layer,
            states=states,
            batch_tokens=self._batch_tokens,
        )

    def _backward_views(self, pairs: Sequence[NumberedPair]) -> list[ReverseView | None]:
        """What the model of the other direction says about each pair."""
        found: list[ReverseView | None] = [None] * len(pairs)
        if self._backward is None:
            return found
        tokenizers = self._backward.tokenizers
        sides = [self._encode(tokenizers, pair.target, pair.source) for pair in pairs]
        # Next to links of heads, which are hardly ever all zero, those of a layer say little.
        layer = None if self._forward.layer is None else self._backward.layer
        for batch in self._batches(self._backward, sides, cross_layer=0, states=layer is not None):
            assert batch.token_losses is not None
            links = layer_links(layer, batch)
            for index, tokens in zip(batch.indices, batch.token_losses, strict=True):
                counted = sides[index][1].counted(tokens.losses.numpy())
                with blamed_on(self._backward.name):
                    check_finite(pairs[index], counted.sum())
                    of_words = _links_of_source(links.get(index), *sides[index])
                # A copy, so that it does not keep the losses of the whole batch in memory.
                found[index] = ReverseView(counted.copy(), of_words)
        return found

    def _log_odds(self, pair: NumberedPair) -> tuple[float, float] | None:
        return None if self._languages is None else self._languages.log_odds(*pair.texts)


def layer_links(layer: AlignmentLayer | None, batch: AttentionBatch) -> dict[int, Weights]:
    """What the layer links in a batch that has states, by the number of the pair."""
    if layer is None:
        return {}
    assert batch.states is not None
    ends = zip(batch.source_sizes.tolist(), batch.target_sizes.tolist(), strict=True)
    sizes = [(source - 1, target - 1) for source, target in ends]
    return dict(layer.weights_of(StateBatch.of(batch.states, batch.indices, sizes)))


def _links_of_source(
    weights: Weights | None, source: PairSide, target: PairSide
) -> WordLinks | None:
    """Which source words an alignment layer links; None without its weights."""
    if weights is None:
        return None
    linked = LinkedWords.of_layer(weights, source, target).source
    return WordLinks(set(source.words.tolist()), linked)


def _by_pair(batch: AttentionBatch) -> "Iterator[tuple[int, np.ndarray, TokenLosses]]":
    assert batch.token_losses is not None
    for attention, tokens in zip(cross_attention_of(batch), batch.token_losses, strict=True):
        yield attention.index, attention.weights, tokens


def is_independent_of_batches(model: Transformer, layer: AlignmentLayer | None = None) -> bool:
    """Whether made-up pairs give bit-identical results alone and in a batch on this processor.

    This is checked for a model, and for its alignment layer if it has one.
    """
    return is_same_alone(model.config, partial(_seen, model, layer))


def _seen(
    model: Transformer,
    layer: AlignmentLayer | None,
    pairs: Sequence[TokenPair],
    batch_tokens: int,
) -> "dict[int, list[np.ndarray]]":
    """Attention, losses, and links if there is a layer, by the number of the pair."""
    found: dict[int, list[np.ndarray]] = {}
    for batch in attention_batches(
        model,
        pairs,
        kinds=SCORED_KINDS,
        losses=True,
        states=layer is not None,
        batch_tokens=batch_tokens,
    ):
        links = layer_links(layer, batch)
        for index, weights, tokens in _by_pair(batch):
            of_layer = [links[index]] if layer is not None else []
            found[index] = [weights, tokens.losses.numpy(), tokens.margins.numpy(), *of_layer]
    return found

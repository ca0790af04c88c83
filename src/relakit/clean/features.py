"""What is computed for one sentence pair, from its attention and losses. No torch here."""

import math
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from relakit.align.alignment import TokenWords, read_layer_alignment
from relakit.align.choice import AlignmentChoice
from relakit.analysis.attention_weights import null_query_share
from relakit.analysis.links import READINGS
from relakit.analysis.word_map import NO_WORD, Integers, Span, split_words, words_of_tokens
from relakit.broken_model import BrokenModelError
from relakit.clean.unsupported import unsupported_chances
from relakit.data.parallel_files import NumberedPair
from relakit.data.tokenizer import END, SPECIAL_TOKENS, Tokenizer

Weights: TypeAlias = npt.NDArray[np.float32]
Losses: TypeAlias = npt.NDArray[np.float64]
"""Nats of each token and of the end of its sentence."""

END_TOKEN: Final = SPECIAL_TOKENS[END]
"""How the end of a sentence is written where tokens are named."""
SPAN: Final = 5
"""How many consecutive tokens a loss is averaged over: about as many as a short phrase has."""


@dataclass(frozen=True)
class Word:
    """A word between spaces: its number in its sentence, from 0, and its text."""

    index: int
    text: str

    def __str__(self) -> str:
        return f"{self.index}:{self.text}"


@dataclass(frozen=True)
class WorstToken:
    """The target token that a model expected least."""

    loss: float
    """In nats"""
    token: str
    """As written in the text; `END_TOKEN` for the end of the sentence"""
    word: Word | None
    """The word that it is part of; None for the end of the sentence and outside of words"""


@dataclass(frozen=True, kw_only=True)
class PairFeatures:
    """What a model says about a sentence pair. It depends on the pair and the model alone."""

    null_rate: float
    """Share of queries whose cross-attention weights are all 0, averaged over layers and heads"""
    alignment_null_rate: float | None
    """Share of target words that the alignment layer links with nothing; without a layer, the null
    rate of the heads that align, computed as above; None if there are no such heads"""
    attention_mass: float
    """Cross-attention weight of a query, averaged over layers, heads and queries"""
    unsupported: tuple[Word, ...]
    """Target words that nothing in the source supports, more probably than not"""
    unsupported_share: float
    """The mean probability of a target word that nothing supports it"""
    uncovered: tuple[Word, ...]
    """Source words that no target word is linked with"""
    cross_entropy: float
    """Nats per target token, including the end of the sentence unless the target is cropped"""
    worst: WorstToken
    worst_span_loss: float
    """Nats per token of the `SPAN` consecutive tokens that the model expected least"""
    end_loss: float | None
    """Nats of the end of the sentence; high if the target seems to lack something; None for a
    cropped target, which ends elsewhere"""
    reverse_cross_entropy: float | None
    """Nats per source token, given the target, by a model of the other direction"""
    reverse_worst_span_loss: float | None
    """Like `worst_span_loss`, for the source by that model; high if the target lacks part of it"""
    source_words: int
    target_words: int
    same_words: int
    """Target words that are also in the source, as numbers and names may be, and all of a copy"""
    source_characters: int
    """Without spaces"""
    target_characters: int
    source_language: float | None
    """Log-odds that it is in its language, in nats per character; None if that was not learnt"""
    target_language: float | None

    @property
    def dual_cross_entropy(self) -> float | None:
        """How much the directions disagree, plus their mean (Junczys-Dowmunt 2018)."""
        if self.reverse_cross_entropy is None:
            return None
        forward, backward = self.cross_entropy, self.reverse_cross_entropy
        return abs(forward - backward) + (forward + backward) / 2

    @property
    def word_ratio(self) -> float:
        """Target words per source word."""
        return self.target_words / self.source_words

    @property
    def character_ratio(self) -> float:
        return self.target_characters / self.source_characters


@dataclass(frozen=True)
class PairSide:
    """One side of a pair: its tokens, and which word each belongs to."""

    text: str
    ids: Sequence[int]
    spans: Sequence[Span]
    word_spans: Sequence[Span]
    words: Integers
    """The word of each token, or `NO_WORD`"""
    is_cropped: bool
    """Whether the text continues after its last token."""

    @classmethod
    def of(cls, tokenizer: Tokenizer, text: str, most: int) -> "PairSide":
        """Encode a text, or the first ``most`` tokens of a long one."""
        # No more than that of an endless line is looked at.
        text = tokenizer.beginning(text, most)
        encoded = tokenizer.encode(text)
        spans = encoded.spans[:most]
        word_spans = split_words(text, tokenized=True)
        return cls(
            text=text,
            ids=encoded.ids[:most],
            spans=spans,
            word_spans=word_spans,
            words=words_of_tokens(spans, word_spans),
            is_cropped=len(encoded.ids) > most,
        )

    def counted(self, losses: Losses) -> Losses:
        """The losses without that of the end, which comes last, if the text continues."""
        return losses[: len(self.ids)] if self.is_cropped else losses

    def word(self, index: int) -> Word:
        start, end = self.word_spans[index]
        return Word(index, self.text[start:end])


def attention_mass(weights: Weights) -> float:
    """Mean weight of a query in ``[..., queries, keys]``."""
    # Contiguous, so that numbers are added in the same order however they lay in memory.
    total = np.abs(np.ascontiguousarray(weights)).sum(dtype=np.float64)
    queries: int = weights.size // weights.shape[-1]
    return float(total) / queries


def chosen_heads(weights: Weights, choice: AlignmentChoice | None) -> Weights:
    """``[heads, queries, keys]``: the heads that align, or all heads of all layers."""
    if choice is None:
        return weights.reshape(-1, *weights.shape[2:])
    return weights[choice.layer, list(choice.heads)]


@dataclass(frozen=True)
class LinkedWords:
    """The words of a pair that are linked with any word of the other side, by their numbers."""

    source: set[int]
    target: set[int]

    @classmethod
    def of_heads(
        cls, weights: Weights, source: PairSide, target: PairSide, *, shift: int
    ) -> "LinkedWords":
        """Words with any weight between them.

        Args:
            weights: those of some heads, ``[heads, target tokens + 1, source tokens + 1]``.
            source: its tokens and words.
            target: its tokens and words.
            shift: 1 to take the weights of a target token from the step that has it as input, 0
                from the step that predicts it.
        """
        rows = (weights[:, shift : shift + len(target.ids), : len(source.ids)] != 0).any(0)
        rows = rows & (target.words != NO_WORD)[:, None] & (source.words != NO_WORD)[None, :]
        return cls(set(source.words[rows.any(0)].tolist()), set(target.words[rows.any(1)].tolist()))

    @classmethod
    def of_layer(cls, weights: Weights, source: PairSide, target: PairSide) -> "LinkedWords":
        """Words that an alignment layer links."""
        counts = len(source.word_spans), len(target.word_spans)
        found = read_layer_alignment(weights, TokenWords(source.words, target.words, *counts))
        return cls({word for word, _ in found.links}, {word for _, word in found.links})


class UnreachedWords(NamedTuple):
    """Words of a pair that the other side does not seem to know."""

    unsupported: tuple[Word, ...]
    unsupported_share: float
    uncovered: tuple[Word, ...]
    """Source words that are linked with no target word"""


@dataclass(frozen=True)
class ReverseView:
    """What a model of the other direction, which translates the target, says about a pair."""

    losses: Losses
    """Those of each source token and the end of the source, unless that is cropped"""
    links: "WordLinks | None" = None
    """What its alignment layer links; None if it has no layer"""


@dataclass(frozen=True)
class WordLinks:
    """Which words a model was asked about, by their numbers, and which of them have a link."""

    asked: Set[int]
    """Not those that its tokens do not reach, because a side is too long for it"""
    linked: Set[int]


def unreached_words(
    linked: LinkedWords,
    margins: Losses,
    source: PairSide,
    target: PairSide,
    reverse_links: WordLinks | None = None,
) -> UnreachedWords:
    """Target words without support, and source words that are linked with no target word.

    The end of the source is no support, as it is not a word. Words for which nothing was computed,
    because their side is too long, are in neither list.

    Args:
        linked: the linked words of both sides.
        margins: how much likelier the model found its own first choice than each target token.
        source: its tokens and words.
        target: its tokens and words.
        reverse_links: those of target words, by a model of the other direction.
    """
    of_words: dict[int, float] = {}
    for word, margin in zip(target.words.tolist(), margins.tolist(), strict=False):
        if word != NO_WORD:
            of_words[word] = max(margin, of_words.get(word, 0.0))
    words = sorted(of_words)
    views = [WordLinks(of_words.keys(), linked.target)]
    if reverse_links is not None:
        views.append(reverse_links)
    chances = unsupported_chances(
        [of_words[word] for word in words],
        [[word in view.linked for view in views if word in view.asked] for word in words],
    )
    unsupported = {word for word, chance in zip(words, chances, strict=True) if chance > 0.5}
    return UnreachedWords(
        unsupported=_words(target, unsupported),
        unsupported_share=math.fsum(chances) / max(len(chances), 1),
        uncovered=_words(source, set(source.words.tolist()) - linked.source),
    )


def _unlinked_share(linked: LinkedWords, target: PairSide) -> float:
    """The share of the target's words without a link, as far as it has tokens."""
    words = set(target.words.tolist()) - {NO_WORD}
    return len(words - linked.target) / max(len(words), 1)


def _words(side: PairSide, indices: set[int]) -> tuple[Word, ...]:
    return tuple(side.word(index) for index in sorted(indices - {NO_WORD}))


def worst_token(losses: Losses, target: PairSide) -> WorstToken:
    """The first token with the greatest loss; a last loss may be that of the sentence's end."""
    place = int(losses.argmax())
    loss = float(losses[place])
    if place == len(target.ids):
        return WorstToken(loss, END_TOKEN, None)
    start, end = target.spans[place]
    index = int(target.words[place])
    word = None if index == NO_WORD else target.word(index)
    return WorstToken(loss, target.text[start:end], word)


def worst_span_loss(losses: Losses) -> float:
    """The greatest mean loss of `SPAN` consecutive tokens, or of all if there are fewer."""
    size = min(SPAN, len(losses))
    return float(np.lib.stride_tricks.sliding_window_view(losses, size).sum(-1).max()) / size


def same_words(source: Sequence[str], target: Sequence[str]) -> int:
    """How many target words are also in the source, each at most as often as it is there."""
    return (Counter(source) & Counter(target)).total()


def check_finite(pair: NumberedPair, *numbers: float) -> None:
    """Raise BrokenModelError, naming the pair, if a model's number is NaN or infinite."""
    if not np.isfinite(numbers).all():
        raise BrokenModelError(where=f"pair {pair.number:,}")


def pair_features(
    pair: NumberedPair,
    source: PairSide,
    target: PairSide,
    weights: Weights,
    losses: Losses,
    margins: Losses,
    *,
    choice: AlignmentChoice | None,
    links: Weights | None = None,
    sums_to_one: bool,
    reverse: ReverseView | None,
    languages: tuple[float, float] | None,
) -> PairFeatures:
    """Compute all numbers of a pair.

    Args:
        pair: the texts.
        source: its tokens and words.
        target: its tokens and words.
        weights: cross-attention ``[layers, heads, target tokens + 1, source tokens + 1]``.
        losses: those of each target token and the end of the sentence.
        margins: how much likelier the model found its own first choice than each of these.
        choice: where links are read.
        links: weights of an alignment layer, ``[target tokens + 1, source tokens + 1]``, which are
            read instead.
        sums_to_one: whether the weights of a query always sum to 1, apart from rounding.
        reverse: what a model of the other direction says.
        languages: language log-odds of both sides.

    Raises:
        BrokenModelError: attention or losses have NaN or infinity; ``reverse``, which comes from
            another model, is not checked.
    """
    mass = 1.0 if sums_to_one else attention_mass(weights)
    check_finite(pair, mass, np.abs(weights).max(), losses.sum())
    if links is not None:
        linked = LinkedWords.of_layer(links, source, target)
        alignment_null_rate: float | None = _unlinked_share(linked, target)
    else:
        read = chosen_heads(weights, choice)
        shift = 0 if choice is None else READINGS.index(choice.reading)
        linked = LinkedWords.of_heads(read, source, target, shift=shift)
        alignment_null_rate = None if choice is None else null_query_share(read)
    unreached = unreached_words(
        linked, margins, source, target, None if reverse is None else reverse.links
    )
    source_words, target_words = pair.source.split(), pair.target.split()
    counted = target.counted(losses)
    return PairFeatures(
        null_rate=null_query_share(weights),
        alignment_null_rate=alignment_null_rate,
        attention_mass=mass,
        unsupported=unreached.unsupported,
        unsupported_share=unreached.unsupported_share,
        uncovered=unreached.uncovered,
        cross_entropy=_mean(counted),
        worst=worst_token(counted, target),
        worst_span_loss=worst_span_loss(counted),
        end_loss=None if target.is_cropped else float(losses[-1]),
        reverse_cross_entropy=None if reverse is None else _mean(reverse.losses),
        reverse_worst_span_loss=None if reverse is None else worst_span_loss(reverse.losses),
        source_words=len(source_words),
        target_words=len(target_words),
        same_words=same_words(source_words, target_words),
        source_characters=sum(map(len, source_words)),
        target_characters=sum(map(len, target_words)),
        source_language=None if languages is None else languages[0],
        target_language=None if languages is None else languages[1],
    )


def _mean(losses: Losses) -> float:
    return float(losses.sum()) / len(losses)

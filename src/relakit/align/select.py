"""Which layer and heads of a model align best, and at which step to read them.

Every head, the average of every layer and small sets of heads are judged by one of three criteria:

- the alignment error rate, on pairs with gold links;
- agreement: the links that a model shares with a model of the other direction, divided by the
  number of words. If both read the same link from different attention, it is seldom by chance;
- the same words: of the words that appear once on each side (numbers, names, marks), the share
  that is linked, times the share of all words that have a link.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt

from relakit.align.choice import AlignmentChoice, ChosenOn, Criterion
from relakit.analysis.aer import AlignmentScore
from relakit.analysis.attention_pass import capture_cross_attention
from relakit.analysis.links import (
    END_WEIGHTS,
    READINGS,
    EndWeight,
    Link,
    Reading,
    best_source_words,
    weights_between_words,
)
from relakit.analysis.pair_batches import EncodedPair, EncodedPairs
from relakit.analysis.pairs import AnalysisPair
from relakit.analysis.word_map import NO_WORD
from relakit.broken_model import blamed_on
from relakit.data.tokenizer_pair import Tokenizers
from relakit.model import ModelConfig, Transformer

LARGEST_SET: Final = 3
"""Most heads whose weights are averaged, apart from all heads of a layer."""

_Best = npt.NDArray[np.int32]
"""``[candidates, target words]``: the source word of each, or `NO_WORD`. Kept small, as the arrays
of all pairs may be in memory."""


@dataclass(frozen=True)
class Candidate:
    """A place where links may be read."""

    layer: int
    heads: tuple[int, ...]
    reading: Reading
    end: EndWeight

    def chosen(self, on: ChosenOn) -> AlignmentChoice:
        return AlignmentChoice(
            layer=self.layer, heads=self.heads, reading=self.reading, end=self.end, chosen=on
        )


@dataclass(frozen=True)
class Alignable:
    """A model, and pairs that it can read."""

    model: Transformer
    tokenizers: Tokenizers
    pairs: Sequence[AnalysisPair]
    """All have words on both sides, and none is too long"""
    files: tuple[str, ...] = ()
    """Where the pairs come from, for the record"""
    name: str = "the model"
    """What errors call the model"""

    def __post_init__(self) -> None:
        if not self.pairs:
            raise ValueError(
                "there is no pair to choose heads on: none has words on both sides and fits the "
                "model"
            )

    def links(self, candidates: Sequence[Candidate]) -> Iterator[tuple[int, _Best]]:
        """The number of each pair, and its links; not in order."""
        encoded = EncodedPairs(self.tokenizers)
        with blamed_on(self.name):
            for attention in capture_cross_attention(self.model, encoded.read(self.pairs)):
                pair = encoded.take(attention.index)
                yield attention.index, _best_words(attention.weights, pair, candidates)

    def chosen(self, best: Candidate, by: Criterion, value: float) -> AlignmentChoice:
        on = ChosenOn(by=by, files=self.files, pairs=len(self.pairs), value=round(value, 4))
        return best.chosen(on)


def select_by_gold(alignable: Alignable) -> AlignmentChoice:
    """The heads with the lowest alignment error rate.

    Do not choose on pairs that are scored later.

    Raises:
        ValueError: there is no sure link.
    """
    gold = [pair.gold for pair in alignable.pairs]
    if not any(links.sure for links in gold if links is not None):
        raise ValueError(f"there is no sure link in {len(gold):,} pairs to choose heads by")

    def error_rates(candidates: Sequence[Candidate]) -> list[float]:
        scores = [AlignmentScore(0, 0, 0, 0)] * len(candidates)
        for index, best in alignable.links(candidates):
            links = gold[index]
            if links is None:
                continue
            for number, words in enumerate(best.tolist()):
                found = {(source, t) for t, source in enumerate(words) if source != NO_WORD}
                scores[number] += AlignmentScore.of(found, links)
        return [score.aer for score in scores]

    best, rate = _lowest(alignable.model.config, error_rates)
    return alignable.chosen(best, "aer", rate)


def select_by_same_words(alignable: Alignable) -> AlignmentChoice:
    """The heads that link words that are the same on both sides, and the most words overall.

    This is for models without gold links and without a model of the other direction. If no pair has
    such words, only the share of words with a link counts.
    """
    anchors = [same_words(pair) for pair in alignable.pairs]
    total = sum(map(len, anchors))

    def losses(candidates: Sequence[Candidate]) -> list[float]:
        linked_anchors, linked, words = (np.zeros(len(candidates)) for _ in range(3))
        for index, best in alignable.links(candidates):
            for source, target in anchors[index]:
                linked_anchors += best[:, target] == source
            # A target word has at most one link, so if many source words have a link, many words
            # on both sides do.
            linked += [2 * len({*row} - {NO_WORD}) for row in best.tolist()]
            pair = alignable.pairs[index]
            words += len(pair.source_words) + len(pair.target_words)
        share = linked / words
        return (-share * (linked_anchors / total if total else 1.0)).tolist()  # type: ignore[no-any-return]

    best, loss = _lowest(alignable.model.config, losses)
    return alignable.chosen(best, "same words", -loss)


def same_words(pair: AnalysisPair) -> list[Link]:
    """The words that appear once on each side, ignoring case."""
    source, target = (
        [text[start:end].casefold() for start, end in words]
        for text, words in ((pair.source, pair.source_words), (pair.target, pair.target_words))
    )
    counts = Counter(source), Counter(target)
    return [
        (source.index(word), target.index(word))
        for word, count in counts[0].items()
        if count == 1 and counts[1][word] == 1
    ]


def select_by_agreement(
    forward: Alignable, model: Transformer, tokenizers: Tokenizers, name: str = "the model"
) -> tuple[AlignmentChoice, AlignmentChoice]:
    """The heads of two models of opposite directions whose links agree most.

    Args:
        forward: the model from source to target, and pairs that fit both models.
        model: the model from target to source.
        tokenizers: the tokenizers of ``model``.
        name: what errors call it.
    """
    turned = [pair.reversed() for pair in forward.pairs]
    backward = Alignable(model, tokenizers, turned, forward.files, name)
    words = sum(len(pair.source_words) + len(pair.target_words) for pair in forward.pairs)

    def agreement(there: Sequence[Candidate], back: Sequence[Candidate]) -> npt.NDArray[np.float64]:
        """``[there, back]``: twice the number of shared links, divided by the number of words."""
        waiting = dict(forward.links(there))
        shared = np.zeros((len(there), len(back)))
        for index, theirs in backward.links(back):
            for target, sources in enumerate(waiting.pop(index).T):
                # Whether the other model links these source words with this target word.
                is_mutual = theirs[:, sources] == target
                shared += (is_mutual & (sources != NO_WORD)).T
        return 2 * shared / words

    there, back = _singles(forward.model.config), _singles(model.config)
    found = agreement(there, back)
    there += _sets(there, (-found.max(1)).tolist())
    back += _sets(back, (-found.max(0)).tolist())
    found = agreement(there, back)
    first, second = np.unravel_index(int(found.argmax()), found.shape)
    value = float(found[first, second])
    return (
        forward.chosen(there[first], "agreement", value),
        backward.chosen(back[second], "agreement", value),
    )


def _lowest(
    config: ModelConfig, losses: Callable[[Sequence[Candidate]], list[float]]
) -> tuple[Candidate, float]:
    """The candidate with the lowest loss, and its loss."""
    candidates = _singles(config)
    found = losses(candidates)
    if sets := _sets(candidates, found):
        candidates += sets
        found += losses(sets)
    best = int(np.argmin(found))
    return candidates[best], found[best]


def _singles(config: ModelConfig) -> list[Candidate]:
    """Every head, and the average of every layer."""
    every = tuple(range(config.heads))
    return [
        Candidate(layer, heads, reading, end)
        for layer in range(config.decoder_layers)
        for heads in dict.fromkeys((*((head,) for head in every), every))
        for reading, end in product(READINGS, END_WEIGHTS)
    ]


def _sets(singles: Sequence[Candidate], losses: Sequence[float]) -> list[Candidate]:
    """The best two and three heads together, in the layer of the best head and read like it."""

    def place(candidate: Candidate) -> tuple[int, Reading, EndWeight]:
        return candidate.layer, candidate.reading, candidate.end

    heads = [number for number, one in enumerate(singles) if len(one.heads) == 1]
    order = sorted(heads, key=losses.__getitem__)
    best = singles[order[0]]
    beside = [singles[number].heads[0] for number in order if place(singles[number]) == place(best)]
    return [
        Candidate(best.layer, tuple(sorted(beside[:count])), best.reading, best.end)
        for count in range(2, min(LARGEST_SET, len(beside) - 1) + 1)
    ]


def _best_words(
    weights: npt.NDArray[np.float32], pair: EncodedPair, candidates: Sequence[Candidate]
) -> _Best:
    targets = len(pair.pair.target_words)
    between = {
        reading: weights_between_words(
            weights,
            pair.source_words,
            pair.target_words,
            shift=shift,
            source_count=len(pair.pair.source_words),
            target_count=targets,
        )
        for shift, reading in enumerate(READINGS)
    }
    found = np.empty((len(candidates), targets), dtype=np.int32)
    for row, candidate in zip(found, candidates, strict=True):
        to_words, to_end = (
            some[candidate.layer, list(candidate.heads)].mean(0)
            for some in between[candidate.reading]
        )
        row[:] = best_source_words(to_words, to_end if candidate.end == "competes" else None)
    return found

"""What an alignment layer learns from: sentence pairs as tokens, and which words are linked."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from relakit.align.aligner import WINDOW, Aligner
from relakit.align.alignment import TokenWords
from relakit.align.states import StateBatch
from relakit.analysis.aer import AlignmentScore
from relakit.analysis.gold import GoldAlignment
from relakit.analysis.links import Links
from relakit.analysis.pair_batches import EncodedPairs, TokenPair
from relakit.analysis.pairs import AnalysisPair
from relakit.analysis.word_map import NO_WORD
from relakit.data.tokenizer_pair import Tokenizers

Integers = npt.NDArray[np.int32]
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Lesson:
    """A pair as tokens, with links between its words. Kept small, as many may be in memory."""

    source_ids: Integers
    target_ids: Integers
    source_token_words: Integers
    """The word of each token, or `NO_WORD`"""
    target_token_words: Integers
    word_counts: tuple[int, int]
    """How many words source and target have"""
    sure: Integers
    """``[links, 2]``, source word first: words that are linked"""
    disputed: Integers
    """``[links, 2]``: words of which nobody knows whether they are linked"""
    is_complete: bool
    """Whether all other words are known not to be linked. If not, that is known only if one of the
    two has a sure link with another word: a teacher that sees only some of the links says nothing
    about the rest."""

    @property
    def tokens(self) -> TokenPair:
        return self.source_ids.tolist(), self.target_ids.tolist()

    @property
    def words(self) -> TokenWords:
        return TokenWords(self.source_token_words, self.target_token_words, *self.word_counts)

    @property
    def links(self) -> GoldAlignment:
        sure, disputed = (
            frozenset((source, target) for source, target in some.tolist())
            for some in (self.sure, self.disputed)
        )
        return GoldAlignment(sure, disputed)

    @property
    def unknown(self) -> Booleans:
        """``[target words, source words]``: True where neither word has a sure link."""
        if self.is_complete:
            return np.zeros(self.word_counts[::-1], dtype=np.bool_)
        targets, sources = (np.ones(count, dtype=np.bool_) for count in self.word_counts[::-1])
        targets[self.sure[:, 1]] = sources[self.sure[:, 0]] = False
        return targets[:, None] & sources

    def score(self, links: Links) -> AlignmentScore:
        """Score links that were found; those of unknown words are neither right nor wrong."""
        unknown = self.unknown
        judged = frozenset(link for link in links if not unknown[link[1], link[0]])
        return AlignmentScore.of(judged, self.links)


def make_lessons(
    tokenizers: Tokenizers,
    pairs: Sequence[AnalysisPair],
    links: Sequence[GoldAlignment],
    *,
    are_complete: bool,
) -> Iterator[Lesson]:
    """Lessons for a model with these tokenizers; possible links that are not sure are disputed."""
    encoded = EncodedPairs(tokenizers)
    for index, (source, target) in enumerate(encoded.read(pairs)):
        pair = encoded.take(index)
        known = links[index]
        yield Lesson(
            np.array(source, dtype=np.int32),
            np.array(target, dtype=np.int32),
            pair.source_words.astype(np.int32),
            pair.target_words.astype(np.int32),
            (len(pair.pair.source_words), len(pair.pair.target_words)),
            _rows(known.sure),
            _rows(known.possible - known.sure),
            are_complete,
        )


def _rows(links: Links) -> Integers:
    return np.array(sorted(links), dtype=np.int32).reshape(-1, 2)


def links_of_two_models(
    forward: Aligner, backward: Aligner, pairs: Iterable[AnalysisPair]
) -> Iterator[GoldAlignment]:
    """The links of each pair: sure if both directions read them, possible if one does."""
    remaining = iter(pairs)
    while window := list(islice(remaining, WINDOW)):
        there, back = forward.align(window), backward.align([pair.reversed() for pair in window])
        for one, other in zip(there, back, strict=True):
            turned = other.reversed().links
            yield GoldAlignment(one.links & turned, one.links | turned)


def token_labels(states: StateBatch, lessons: Sequence[Lesson]) -> tuple[Tensor, Tensor]:
    """Labels for the layer's scores ``[pairs, target positions, source positions]``.

    Returns:
        Two tensors: 1 where the words of both tokens are linked, and 1 where that is known. It is
        not known between disputed words; nor, if a lesson is not complete, between two words
        without a sure link; nor for tokens of no word, the ends of sentences and padding.
    """
    shape = states.target.size(0), states.target.size(1), states.source.size(1)
    linked, known = (np.zeros(shape, dtype=np.float32) for _ in range(2))
    for row, index in enumerate(states.indices):
        lesson = lessons[index]
        sources, targets = lesson.source_token_words, lesson.target_token_words
        place = row, slice(len(targets)), slice(len(sources))
        words = np.zeros((2, lesson.word_counts[1], lesson.word_counts[0]), dtype=np.bool_)
        for kind, links in enumerate((lesson.sure, lesson.disputed)):
            words[kind, links[:, 1], links[:, 0]] = True
        words[1] |= lesson.unknown
        in_words = (targets != NO_WORD)[:, None] & (sources != NO_WORD)
        # Tokens of no word get the labels of some word here; they are masked below.
        tokens = words[:, targets[:, None], sources]
        linked[place] = tokens[0] * in_words
        known[place] = ~tokens[1] * in_words
    device = states.target.device
    return torch.from_numpy(linked).to(device), torch.from_numpy(known).to(device)

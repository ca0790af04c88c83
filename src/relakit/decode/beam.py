"""Beam search over a batch of sentences, and sampling, which differs in a few places.

Every step considers the ``2 * beam`` best continuations of a sentence. Those among the best
``beam`` (among all of them with ``wide_ends``) that end the sentence are set aside as ended
hypotheses; the best ``beam`` that do not end it continue. Hypotheses compare by log-probability /
((5 + length) / 6) ** alpha, where the length counts the end-of-sentence token (Wu et al., 2016).

A sentence is done when it has as many ended hypotheses as are wanted (``nbest``) and no running
hypothesis can beat them: a log-probability can only fall, so the best score that a running
hypothesis can reach is that of its present log-probability at the maximum length. Searching further
would not change what is returned. With a beam of 1, which is greedy search unless ends are wide, a
sentence is done with its first ended hypothesis. A hypothesis of the maximum length can only
continue with the end-of-sentence token; one below the minimum length, with any token but that.

Samples run side by side like beams, but each continues with the token that is drawn for it, and
none replaces another. A sentence is done when all of its samples have ended.

Where a translation must begin with a prefix, all tokens that do not follow it are ruled out.

An engine's tensors are on the device where it computes. The search itself makes its decisions on
the CPU, with NumPy: for the few numbers of a step most of the time would go into the calls, and
PyTorch's take several times as long.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from relakit.data.tokenizer import BEGIN, END, PAD
from relakit.decode.best_tokens import (
    Candidates,
    allow_only,
    apply_rules,
    best_candidates,
    keep_to_lists,
)
from relakit.decode.engine import Engine, RunningHypotheses
from relakit.decode.prefixes import Prefix
from relakit.decode.sampling import draw, random_numbers
from relakit.decode.settings import SearchSettings
from relakit.decode.shortlist import TokenIds


@dataclass(frozen=True)
class Ended:
    """A finished hypothesis."""

    tokens: list[int]
    """Without the end-of-sentence token."""
    log_probability: float
    """Of all its tokens and its end."""
    score: float
    """The log-probability divided by the length penalty."""


def length_penalty(length: int, alpha: float) -> float:
    """What a log-probability is divided by; the length counts the end-of-sentence token."""
    return float(((5 + length) / 6) ** alpha)


class EndedHypotheses:
    """The best ended hypotheses of one sentence."""

    def __init__(self, settings: SearchSettings, limit: int) -> None:
        """``limit``: most tokens, without the end-of-sentence token."""
        self.settings = settings
        self.limit = limit
        self._best: list[Ended] = []

    def add(self, tokens: list[int], log_probability: float) -> None:
        """Add a hypothesis; if there are more than wanted, drop the worst."""
        penalty = length_penalty(len(tokens) + 1, self.settings.length_penalty)
        self._best.append(Ended(tokens, log_probability, log_probability / penalty))
        self._best.sort(key=lambda ended: -ended.score)  # stable: among equals, first stays first
        del self._best[self.settings.wanted :]

    def are_final(self, running: float) -> bool:
        """Whether no running hypothesis, with at best this log-probability, can get among them."""
        if running == -math.inf:
            return True
        if len(self._best) < self.settings.wanted:
            return False
        if self.settings.beam == 1 and not self.settings.wide_ends:
            return True
        attainable = running / length_penalty(self.limit + 1, self.settings.length_penalty)
        return attainable <= self._best[-1].score

    def best(self) -> list[Ended]:
        """The hypotheses kept, best first."""
        return list(self._best)


class Continuations(NamedTuple):
    """`Candidates` on the CPU."""

    scores: np.ndarray[Any, np.dtype[np.float32]]
    beams: np.ndarray[Any, np.dtype[np.int64]]
    tokens: np.ndarray[Any, np.dtype[np.int64]]

    @classmethod
    def of(cls, candidates: Candidates) -> "Continuations":
        return cls(*(x.cpu().numpy() for x in candidates))


def without_ended(found: Continuations) -> Continuations:
    """The same continuations, but those that end their sentence have no chance."""
    scores = np.where(found.tokens == END, np.float32(-math.inf), found.scores)
    # A token without a chance may not exist (see `OutputLayer`), but will be embedded.
    return Continuations(scores, found.beams, np.where(scores == -math.inf, PAD, found.tokens))


def go_on(found: Continuations, beam: int) -> Continuations:
    """The best ``beam`` continuations that do not end their sentence; among equals, the first."""
    running = without_ended(found)
    best = np.argsort(-running.scores, axis=1, kind="stable")[:, :beam]
    sentence = np.arange(len(best))[:, None]
    return Continuations(
        running.scores[sentence, best],
        running.beams[sentence, best],
        running.tokens[sentence, best],
    )


@dataclass
class _Sentence:
    """What a search knows about one sentence, besides its running hypotheses."""

    ended: EndedHypotheses
    prefix: Prefix | None = None
    allowed: TokenIds | None = None
    """The tokens to choose among, except in a prefix; None for all."""
    numbers: list[random.Random] = field(default_factory=list)
    """Random numbers for each sample; empty in a beam search."""
    is_done: bool = False


class _Batch:
    """The running hypotheses of some sentences; sentences that are done leave it."""

    def __init__(
        self,
        running: RunningHypotheses,
        sentences: Sequence[_Sentence],
        settings: SearchSettings,
        device: torch.device,
        *,
        engine_chooses: bool,
    ) -> None:
        self.running = running
        self.engine_chooses = engine_chooses
        """If not, it computes the probabilities of all tokens, and this class applies the lists."""
        self.settings = settings
        self.beam = settings.followed
        self.may_end = self.beam * (2 if settings.wide_ends else 1)
        self.sentences = list(sentences)
        self.device = device
        rows = len(sentences) * self.beam
        self.tokens = np.full((rows, 1), BEGIN)  # all tokens so far, [rows, steps + 1]
        self.scores = np.zeros((len(sentences), self.beam), dtype=np.float32)
        if not settings.sample:
            # At the start all beams of a sentence are alike; only the first may continue.
            self.scores[:, 1:] = -math.inf

    @property
    def length(self) -> int:
        """Tokens of every running hypothesis, before a step."""
        return self.running.steps  # the begin token was read, the last one is still to be read

    @property
    def is_done(self) -> bool:
        return all(sentence.is_done for sentence in self.sentences)

    def must_end(self) -> list[bool] | None:
        """For each sentence, whether its hypotheses have the maximum length; None if none has."""
        at_limit = [sentence.ended.limit == self.length for sentence in self.sentences]
        return at_limit if any(at_limit) else None

    def for_engine(self, numbers: np.ndarray[Any, Any]) -> Tensor:
        """The numbers as a tensor on the engine's device."""
        tensor = torch.from_numpy(np.ascontiguousarray(numbers))
        return tensor if self.device.type == "cpu" else tensor.to(self.device)

    def step(self) -> Candidates:
        """Read the last token of every hypothesis; return continuations."""
        is_too_short = self.length < self.settings.min_length
        forbidden = (PAD, BEGIN, END) if is_too_short else (PAD, BEGIN)
        last, scores = self.for_engine(self.tokens[:, -1]), self.for_engine(self.scores)
        must_end, count = self.must_end(), 2 * self.beam
        if self.engine_chooses:
            return self.running.candidates(
                last, scores, count, forbidden=forbidden, must_end=must_end
            )
        in_prefix = [
            i
            for i, sentence in enumerate(self.sentences)
            if sentence.prefix is not None and self.length < sentence.prefix.longest
        ]
        log_probabilities = self.running.log_probabilities(last)
        # A prefix may contain any token.
        lists = [None if i in in_prefix else s.allowed for i, s in enumerate(self.sentences)]
        keep_to_lists(log_probabilities, self.beam, lists)
        apply_rules(log_probabilities, self.beam, forbidden=forbidden, must_end=must_end)
        for sentence in in_prefix:
            self._keep_to_prefix(sentence, log_probabilities)
        if self.settings.sample:
            numbers = [row for sentence in self.sentences for row in sentence.numbers]
            return draw(log_probabilities, scores, self.settings, numbers)
        return best_candidates(log_probabilities, scores, count)

    def _keep_to_prefix(self, sentence: int, log_probabilities: Tensor) -> None:
        """Rule out tokens that do not follow the prefix of a sentence, in place."""
        prefix = self.sentences[sentence].prefix
        assert prefix is not None
        for row in range(sentence * self.beam, (sentence + 1) * self.beam):
            allowed = prefix.allowed(self.tokens[row, 1:].tolist())
            if allowed is not None:
                only = torch.tensor([row], device=log_probabilities.device)
                allow_only(log_probabilities, only, allowed)

    def collect_ended(self, found: Continuations) -> None:
        """Set aside the continuations that end a sentence, if they are among the best."""
        is_end = found.tokens[:, : self.may_end] == END
        if not is_end.any():
            return
        is_end &= found.scores[:, : self.may_end] > -math.inf
        for index, place in np.argwhere(is_end).tolist():
            sentence = self.sentences[index]
            if not sentence.is_done:
                row = index * self.beam + int(found.beams[index, place])
                sentence.ended.add(self.tokens[row, 1:].tolist(), float(found.scores[index, place]))

    def advance(self, running: Continuations) -> None:
        """Add a token to every beam."""
        first = np.arange(0, len(self.tokens), self.beam)
        rows = (running.beams + first[:, None]).ravel()
        self.tokens = np.concatenate([self.tokens[rows], running.tokens.reshape(-1, 1)], axis=1)
        self.scores = running.scores
        self.running.reorder(self.for_engine(running.beams))
        for sentence, best in zip(self.sentences, running.scores.max(1).tolist(), strict=True):
            sentence.is_done = sentence.is_done or sentence.ended.are_final(best)

    def leave(self) -> None:
        """Drop the sentences that are done, once there are enough of them to be worth it."""
        kept = [i for i, sentence in enumerate(self.sentences) if not sentence.is_done]
        count = len(self.sentences)
        done = count - len(kept)
        if done in (0, count) or done < count * self.running.least_share_to_drop:
            return
        self.running.keep(kept)
        self.scores = self.scores[kept]
        length = self.tokens.shape[1]
        self.tokens = self.tokens.reshape(count, self.beam, length)[kept].reshape(-1, length)
        self.sentences = [self.sentences[i] for i in kept]


@torch.inference_mode()
def beam_search(
    model: Engine,
    sources: Sequence[Sequence[int]],
    limits: Sequence[int],
    settings: SearchSettings,
    *,
    prefixes: Sequence[Prefix | None] | None = None,
    allowed: Sequence[TokenIds] | None = None,
    numbers: Sequence[int] | None = None,
) -> list[list[Ended]]:
    """The best hypotheses of each sentence, or samples, best first.

    Args:
        model: ready for searches.
        sources: token ids of each sentence, with the end-of-sentence token.
        limits: most tokens in each translation, not fewer than its prefix may have.
        settings: how to search.
        prefixes: what each translation begins with.
        allowed: the tokens that each translation may have, except in its prefix, END first; None
            for any.
        numbers: the numbers of the sentences, on which their samples depend; by default 0, 1, 2 and
            so on.
    """
    sentences = [_Sentence(EndedHypotheses(settings, limit)) for limit in limits]
    for sentence, prefix in zip(sentences, prefixes or (), strict=prefixes is not None):
        sentence.prefix = prefix
    for sentence, tokens in zip(sentences, allowed or (), strict=allowed is not None):
        sentence.allowed = tokens
    if settings.sample:
        for sentence, number in zip(sentences, numbers or range(len(sentences)), strict=True):
            sentence.numbers = random_numbers(settings.seed, number, settings.followed)
    # With a prefix all steps work alike, whether or not other sentences are past theirs.
    engine_chooses = not settings.sample and not any(sentence.prefix for sentence in sentences)
    running = model.start(sources, settings.followed, allowed if engine_chooses else None)
    batch = _Batch(running, sentences, settings, model.device, engine_chooses=engine_chooses)
    while not batch.is_done:
        found = Continuations.of(batch.step())
        batch.collect_ended(found)
        batch.advance(without_ended(found) if settings.sample else go_on(found, batch.beam))
        batch.leave()
    return [sentence.ended.best() for sentence in sentences]

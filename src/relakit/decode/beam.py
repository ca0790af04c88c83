"""Beam search over a batch of sentences.

In every step the ``2 * beam`` best continuations of a sentence are looked at. Those among the best
``beam`` that end the sentence (among all of them with ``wide_ends``) are kept aside as ended
hypotheses, the best ``beam`` that do not end it go on. Hypotheses compare by log-probability /
((5 + length) / 6) ** alpha, where the length counts the end-of-sentence token (Wu et al., 2016).

A sentence is done when it has as many ended hypotheses as are wanted (``nbest``) that no running
one can beat: its log-probability can only fall, so its score can at best become that of its present
log-probability at the greatest length. Searching on would not change what is returned. With a beam
of 1, which is greedy search unless ends are wide, a sentence is done with its first ended
hypothesis. A hypothesis of the greatest length can only go on with the end-of-sentence token; one
below the least length, with any token but that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from relakit.data.tokenizer import BEGIN, END, PAD
from relakit.decode.best_tokens import Candidates
from relakit.decode.engine import Engine, RunningHypotheses
from relakit.decode.settings import SearchSettings


@dataclass(frozen=True)
class Ended:
    """A finished hypothesis."""

    tokens: list[int]
    """Without the end-of-sentence token."""
    log_probability: float
    """Of all its tokens and of its end."""
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
        """Add one; if there are more than wanted, the worst is dropped."""
        penalty = length_penalty(len(tokens) + 1, self.settings.length_penalty)
        self._best.append(Ended(tokens, log_probability, log_probability / penalty))
        self._best.sort(key=lambda ended: -ended.score)  # stable: of equals the first stays first
        del self._best[self.settings.wanted :]

    def are_final(self, running: float) -> bool:
        """Whether no running hypothesis, of this log-probability at best, can get among them."""
        if running == -math.inf:
            return True
        if len(self._best) < self.settings.wanted:
            return False
        if self.settings.beam == 1 and not self.settings.wide_ends:
            return True
        attainable = running / length_penalty(self.limit + 1, self.settings.length_penalty)
        return attainable <= self._best[-1].score

    def best(self) -> list[Ended]:
        """Those kept, best first."""
        return list(self._best)


def go_on(candidates: Candidates, beam: int) -> Candidates:
    """The best ``beam`` of the candidates that do not end their sentence."""
    running = candidates.scores.masked_fill(candidates.tokens == END, -math.inf)
    scores, places = running.topk(beam)
    # What has no chance may be no token at all (see `OutputLayer`), but will be embedded.
    tokens = candidates.tokens.gather(1, places).masked_fill_(scores == -math.inf, PAD)
    return Candidates(scores, candidates.beams.gather(1, places), tokens)


class _Batch:
    """The running hypotheses of some sentences; sentences that are done leave it."""

    def __init__(
        self,
        running: RunningHypotheses,
        limits: Sequence[int],
        settings: SearchSettings,
        device: torch.device,
    ) -> None:
        self.running = running
        self.beam = settings.beam
        self.may_end = settings.beam * (2 if settings.wide_ends else 1)
        self.ended = [EndedHypotheses(settings, limit) for limit in limits]
        self.is_done = [False] * len(limits)
        rows = len(limits) * self.beam
        self.tokens = torch.full((rows, 1), BEGIN, device=device)  # all so far, [rows, steps + 1]
        # At the start all beams of a sentence are alike; only the first may go on.
        shape = (len(limits), self.beam)
        self.scores = torch.full(shape, -math.inf, dtype=torch.float32, device=device)
        self.scores[:, 0] = 0.0

    @property
    def length(self) -> int:
        """Tokens of every running hypothesis, before a step."""
        return self.running.steps  # the begin token was read, but counts for the one to be read

    def must_end(self) -> list[bool] | None:
        """Whether the hypotheses of a sentence have the greatest length; None if none have."""
        at_limit = [ended.limit == self.length for ended in self.ended]
        return at_limit if any(at_limit) else None

    def collect_ended(self, candidates: Candidates) -> None:
        """Put aside the candidates that end a sentence, if they are among the best."""
        is_end = candidates.tokens[:, : self.may_end] == END
        if not bool(is_end.any()):
            return
        is_end &= candidates.scores[:, : self.may_end] > -math.inf
        for sentence, place in is_end.nonzero().tolist():
            if not self.is_done[sentence]:
                row = sentence * self.beam + int(candidates.beams[sentence, place])
                self.ended[sentence].add(
                    self.tokens[row, 1:].tolist(), float(candidates.scores[sentence, place])
                )

    def advance(self, running: Candidates) -> None:
        """Add a token to every beam."""
        first = torch.arange(0, self.tokens.size(0), self.beam, device=self.tokens.device)
        rows = (running.beams + first[:, None]).view(-1)
        self.tokens = torch.cat(
            [self.tokens.index_select(0, rows), running.tokens.view(-1, 1)], dim=1
        )
        self.scores = running.scores
        self.running.reorder(running.beams)
        for sentence, best in enumerate(running.scores[:, 0].tolist()):
            if not self.is_done[sentence]:
                self.is_done[sentence] = self.ended[sentence].are_final(best)

    def leave(self) -> None:
        """Drop the sentences that are done, once there are enough of them to be worth it."""
        done, count = sum(self.is_done), len(self.is_done)
        if done in (0, count) or done < count * self.running.least_share_to_drop:
            return
        kept = [i for i, is_done in enumerate(self.is_done) if not is_done]
        index = torch.tensor(kept, device=self.scores.device)
        self.running.keep(kept)
        self.scores = self.scores.index_select(0, index)
        self.tokens = self.tokens.view(-1, self.beam, self.tokens.size(1)).index_select(0, index)
        self.tokens = self.tokens.flatten(0, 1)
        self.ended = [self.ended[i] for i in kept]
        self.is_done = [False] * len(kept)


@torch.inference_mode()
def beam_search(
    model: Engine,
    sources: Sequence[Sequence[int]],
    limits: Sequence[int],
    settings: SearchSettings,
) -> list[list[Ended]]:
    """The best hypotheses of each sentence, best first.

    Args:
        model: ready for searches.
        sources: token ids of each sentence, with the end-of-sentence token.
        limits: most tokens of each translation.
        settings: how to search.
    """
    running = model.start(sources, settings.beam)
    batch = _Batch(running, limits, settings, model.device)
    found = list(batch.ended)
    while not all(batch.is_done):
        is_too_short = batch.length < settings.min_length
        candidates = running.candidates(
            batch.tokens[:, -1],
            batch.scores,
            2 * settings.beam,
            forbidden=(PAD, BEGIN, END) if is_too_short else (PAD, BEGIN),
            must_end=batch.must_end(),
        )
        batch.collect_ended(candidates)
        batch.advance(go_on(candidates, settings.beam))
        batch.leave()
    return [ended.best() for ended in found]

"""Several models as one: the probability of a token is the mean of theirs."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from relakit.decode.best_tokens import (
    Candidates,
    apply_rules,
    best_candidates,
    keep_to_lists,
)
from relakit.decode.engine import Engine, RunningHypotheses
from relakit.decode.shortlist import TokenIds


class EnsembleEngine:
    """See `Engine`. Its members read and write the same tokens, on one device."""

    def __init__(self, members: Sequence[Engine]) -> None:
        self._members = members

    @property
    def device(self) -> torch.device:
        """See `Engine`, also for the other methods."""
        return self._members[0].device

    def start(
        self,
        sources: Sequence[Sequence[int]],
        beams: int,
        allowed: Sequence[TokenIds] | None = None,
    ) -> "EnsembleHypotheses":
        # Lists apply to the members' combined probabilities.
        started = [member.start(sources, beams) for member in self._members]
        return EnsembleHypotheses(started, allowed)


class EnsembleHypotheses:
    """See `RunningHypotheses`."""

    def __init__(
        self, members: Sequence[RunningHypotheses], allowed: Sequence[TokenIds] | None
    ) -> None:
        self._members = members
        self._allowed = allowed
        self.least_share_to_drop = max(member.least_share_to_drop for member in members)

    @property
    def steps(self) -> int:
        """See `RunningHypotheses`, also for the other methods."""
        return self._members[0].steps

    def candidates(
        self,
        tokens: Tensor,
        scores: Tensor,
        count: int,
        *,
        forbidden: Sequence[int],
        must_end: Sequence[bool] | None,
    ) -> Candidates:
        log_probabilities = self.log_probabilities(tokens)
        if self._allowed is not None:
            keep_to_lists(log_probabilities, scores.size(1), self._allowed)
        apply_rules(log_probabilities, scores.size(1), forbidden=forbidden, must_end=must_end)
        return best_candidates(log_probabilities, scores, count)

    def log_probabilities(self, tokens: Tensor) -> Tensor:
        each = torch.stack([member.log_probabilities(tokens) for member in self._members])
        return each.logsumexp(0).sub_(math.log(len(self._members)))

    def reorder(self, parents: Tensor) -> None:
        for member in self._members:
            member.reorder(parents)

    def keep(self, sentences: Sequence[int]) -> None:
        for member in self._members:
            member.keep(sentences)
        if self._allowed is not None:
            self._allowed = [self._allowed[sentence] for sentence in sentences]

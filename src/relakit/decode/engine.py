"""What a search runs on: an engine reads tokens and proposes the next ones.

There are two: `relakit.decode.native_engine` in C++ and `relakit.decode.torch_engine` in PyTorch;
`relakit.decode.ensemble` makes one of several.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from relakit.decode.best_tokens import Candidates
from relakit.decode.shortlist import TokenIds


class RunningHypotheses(Protocol):
    """Beams of some sentences, and what the decoder keeps of their tokens."""

    least_share_to_drop: float
    """The share of finished sentences from which on it pays to `keep` only the others."""

    @property
    def steps(self) -> int:
        """Tokens read so far, the begin-of-sentence token included."""

    def candidates(
        self,
        tokens: Tensor,
        scores: Tensor,
        count: int,
        *,
        forbidden: Sequence[int],
        must_end: Sequence[bool] | None,
    ) -> Candidates:
        """Read another token of each beam; return the best continuations.

        In the first step the beams of a sentence are alike, and only the first may have a chance.

        Args:
            tokens: ``[rows]``.
            scores: log-probabilities so far, ``[batch, beams]``.
            count: how many candidates of each sentence.
            forbidden: tokens that are never chosen.
            must_end: for each sentence, whether only the end-of-sentence token may be chosen; None:
                for none of them.

        Raises:
            ValueError: the model's scores are not finite.
        """

    def log_probabilities(self, tokens: Tensor) -> Tensor:
        """Read another token ``[rows]`` of each beam; return the log-probability of every next one.

        For whatever `candidates` cannot do. ``[rows, columns]``, -inf where no token is, for the
        caller to change; of all tokens, whichever are allowed. May raise as `candidates`.
        """

    def reorder(self, parents: Tensor) -> None:
        """Let every beam continue another one: ``[batch, beams]`` numbers of beams."""

    def keep(self, sentences: Sequence[int]) -> None:
        """Drop all sentences but those at these indices, which are in ascending order."""


class Engine(Protocol):
    """A model, ready for searches."""

    @property
    def device(self) -> torch.device:
        """Where scores and tokens are."""

    def start(
        self,
        sources: Sequence[Sequence[int]],
        beams: int,
        allowed: Sequence[TokenIds] | None = None,
    ) -> RunningHypotheses:
        """Encode sentences, and begin with ``beams`` hypotheses of each.

        Args:
            sources: token ids, with the end-of-sentence token.
            beams: how many.
            allowed: for each sentence, the tokens that `RunningHypotheses.candidates` chooses
                among, END first: their probabilities add up to 1. None: all.
        """

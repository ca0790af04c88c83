"""What a search runs on: an engine reads tokens and proposes the next ones.

There are two: `relakit.decode.native_engine` in C++ and `relakit.decode.torch_engine` in PyTorch;
`relakit.decode.ensemble` combines several into one.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from relakit.decode.best_tokens import Candidates
from relakit.decode.shortlist import TokenIds


class RunningHypotheses(Protocol):
    """The beams of some sentences, and what the decoder keeps of their tokens."""

    least_share_to_drop: float
    """The smallest share of finished sentences at which it pays to `keep` only the others."""

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

        In the first step all beams of a sentence are alike, and only the first may have a chance.

        Args:
            tokens: ``[rows]``.
            scores: log-probabilities so far, ``[batch, beams]``.
            count: how many candidates to return for each sentence.
            forbidden: tokens that are never chosen.
            must_end: for each sentence, whether only the end-of-sentence token may be chosen; None
                if that applies to none of them.

        Raises:
            ValueError: the model's scores are not finite.
        """

    def log_probabilities(self, tokens: Tensor) -> Tensor:
        """Read another token ``[rows]`` of each beam; return the log-probability of every next one.

        For whatever `candidates` cannot do. The result is ``[rows, columns]``, with all tokens,
        allowed or not, and -inf in columns without a token; the caller may change it. May raise
        like `candidates`.
        """

    def reorder(self, parents: Tensor) -> None:
        """Make every beam continue the one with the given number: ``[batch, beams]``."""

    def keep(self, sentences: Sequence[int]) -> None:
        """Drop all sentences but those at these indices, which are in ascending order."""


class Engine(Protocol):
    """A model, ready for searches."""

    @property
    def device(self) -> torch.device:
        """The device of scores and tokens."""

    def start(
        self,
        sources: Sequence[Sequence[int]],
        beams: int,
        allowed: Sequence[TokenIds] | None = None,
    ) -> RunningHypotheses:
        """Encode sentences, and begin with ``beams`` hypotheses of each.

        Args:
            sources: token ids, with the end-of-sentence token.
            beams: how many hypotheses for each sentence.
            allowed: for each sentence, the tokens that `RunningHypotheses.candidates` chooses
                among, END first: their probabilities add up to 1. None for all tokens.
        """

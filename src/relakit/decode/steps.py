"""What a beam search asks of a decoder, and how PyTorch answers it.

`relakit.decode.native_steps` has another answer, in C++.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from relakit.data.batches import pad_batch
from relakit.data.tokenizer import END
from relakit.decode.cache import DecoderCache
from relakit.decode.candidates import (
    Candidates,
    OutputLayer,
    allow_only,
    best_candidates,
    forbid,
    log_normalisers,
)
from relakit.decode.incremental import IncrementalDecoder
from relakit.model import Transformer

NOT_FINITE = (
    "the model's scores are not finite numbers: its weights are broken, or its training has "
    "diverged"
)


class RunningHypotheses(Protocol):
    """Beams of some sentences, and what the decoder keeps of their tokens."""

    least_share_to_drop: float
    """The share of sentences from which on it pays to call `keep` without them."""

    @property
    def steps(self) -> int:
        """Tokens that were read, the begin-of-sentence token included."""

    def candidates(
        self,
        tokens: Tensor,
        scores: Tensor,
        count: int,
        *,
        forbidden: Sequence[int],
        must_end: Sequence[bool] | None,
    ) -> Candidates:
        """Read another token of each beam; give the best ways of going on from there.

        Args:
            tokens: ``[rows]``.
            scores: log-probabilities so far, ``[batch, beams]``.
            count: how many candidates of each sentence.
            forbidden: tokens that have no chance.
            must_end: for each sentence, whether the end-of-sentence token alone has a chance; None:
                for none of them.

        Raises:
            ValueError: the model's scores are not finite.
        """

    def reorder(self, parents: Tensor) -> None:
        """Let every beam go on from where another one is: ``[batch, beams]`` numbers of beams."""

    def keep(self, sentences: Sequence[int]) -> None:
        """Drop all sentences but those at these indices, which rise."""


class DecoderSteps(Protocol):
    """A model, ready for searches."""

    @property
    def device(self) -> torch.device:
        """Where scores and tokens are."""

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> RunningHypotheses:
        """Encode sentences, and begin with ``beams`` hypotheses of each.

        ``sources`` are token ids, with the end-of-sentence token.
        """


class PyTorchSteps:
    """On any device and for every attention. It copies the decoder's weights when it is made."""

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._decoder = IncrementalDecoder(model)
        self._output = OutputLayer(model.embedding.weight)

    @property
    def device(self) -> torch.device:
        """See `DecoderSteps`, as for all others."""
        return self._model.embedding.weight.device

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> "PyTorchHypotheses":
        memory = self._model.encode(torch.from_numpy(pad_batch(sources)).to(self.device))
        return PyTorchHypotheses(self._decoder, self._output, self._decoder.start(memory, beams))


class PyTorchHypotheses:
    """See `RunningHypotheses`."""

    least_share_to_drop = 0.25  # all keys and values of the others are copied

    def __init__(
        self, decoder: IncrementalDecoder, output: OutputLayer, cache: DecoderCache
    ) -> None:
        self._decoder = decoder
        self._output = output
        self._cache = cache

    @property
    def steps(self) -> int:
        """See `RunningHypotheses`, as for all others."""
        return self._cache.steps

    def candidates(
        self,
        tokens: Tensor,
        scores: Tensor,
        count: int,
        *,
        forbidden: Sequence[int],
        must_end: Sequence[bool] | None,
    ) -> Candidates:
        logits = self._output(self._decoder.step(tokens, self._cache))
        normalisers = log_normalisers(logits)
        if not bool(normalisers.isfinite().all()):
            raise ValueError(NOT_FINITE)
        forbid(logits, forbidden)
        if must_end is not None:
            rows = torch.tensor(must_end, device=logits.device).repeat_interleave(scores.size(1))
            allow_only(logits, rows.nonzero().view(-1), END)
        return best_candidates(logits, scores - normalisers.view(scores.shape), count)

    def reorder(self, parents: Tensor) -> None:
        self._cache.reorder(parents)

    def keep(self, sentences: Sequence[int]) -> None:
        self._cache.keep(torch.tensor(sentences, device=self._cache.cross[0].key.device))

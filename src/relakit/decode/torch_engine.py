"""The search engine in PyTorch: for any device and any attention."""

from collections.abc import Sequence

import torch
from torch import Tensor

from relakit.data.batches import pad_batch
from relakit.decode.best_tokens import (
    Candidates,
    ListedOutput,
    OutputLayer,
    apply_rules,
    best_candidates,
    finite_normalisers,
)
from relakit.decode.shortlist import TokenIds
from relakit.model import Transformer
from relakit.model.decoder_cache import DecoderCache
from relakit.model.embedding import Embedding
from relakit.model.transformer import Decoder


class TorchEngine:
    """See `Engine`. Copies the decoder's weights when it is created."""

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._decoder = copy_for_few_rows(model)
        self._output = OutputLayer(model.embedding.weight)

    @property
    def device(self) -> torch.device:
        """See `Engine`, also for the other methods."""
        return self._model.embedding.weight.device

    def start(
        self,
        sources: Sequence[Sequence[int]],
        beams: int,
        allowed: Sequence[TokenIds] | None = None,
    ) -> "TorchHypotheses":
        memory = self._model.encode(torch.from_numpy(pad_batch(sources)).to(self.device))
        cache = self._decoder.start(memory, beams)
        listed = None if allowed is None else ListedOutput(self._output, allowed, beams=beams)
        return TorchHypotheses(self._model.embedding, self._decoder, self._output, cache, listed)


class TorchHypotheses:
    """See `RunningHypotheses`."""

    least_share_to_drop = 0.25  # to drop some, all keys and values of the others are copied

    def __init__(
        self,
        embedding: Embedding,
        decoder: Decoder,
        output: OutputLayer,
        cache: DecoderCache,
        listed: ListedOutput | None,
    ) -> None:
        self._embedding = embedding
        self._decoder = decoder
        self._output = output
        self._cache = cache
        self._listed = listed

    @property
    def steps(self) -> int:
        """See `RunningHypotheses`, also for the other methods."""
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
        if self._listed is not None:
            return self._listed.candidates(
                self._step(tokens), scores, count, forbidden=forbidden, must_end=must_end
            )
        logits = self._output(self._step(tokens))
        # Applied to the scores, not to all logits, which would take another pass over them.
        normalisers = finite_normalisers(logits)
        apply_rules(logits, scores.size(1), forbidden=forbidden, must_end=must_end)
        return best_candidates(logits, scores - normalisers.view(scores.shape), count)

    def log_probabilities(self, tokens: Tensor) -> Tensor:
        return self._output.log_probabilities(self._step(tokens))

    def _step(self, tokens: Tensor) -> Tensor:
        """Read another token of each beam: ``[rows]`` to states ``[rows, dim]``."""
        embedded = self._embedding.at(self._cache.steps, tokens)
        return self._decoder.step(embedded, self._cache)

    def reorder(self, parents: Tensor) -> None:
        self._cache.reorder(parents)

    def keep(self, sentences: Sequence[int]) -> None:
        places = torch.tensor(sentences, device=self._embedding.weight.device)
        self._cache.keep(places)
        if self._listed is not None:
            self._listed.keep(places)


def copy_for_few_rows(model: Transformer) -> Decoder:
    """The model's decoder with its matrices transposed in memory.

    This makes BLAS up to 1.5 times as fast for small matrices and few rows, which a search has.
    """
    weights = {
        name: x.t().contiguous().t() if x.dim() == 2 else x.clone()
        for name, x in model.decoder.state_dict().items()
    }
    with torch.device("meta"):
        decoder = Decoder(model.config)
    decoder.load_state_dict(weights, assign=True)
    return decoder.requires_grad_(False).eval()

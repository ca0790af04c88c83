"""From a step's logits to the best continuations: the part of a search that sees the vocabulary.

Shapes in comments: ``batch`` sentences, ``beams`` of each, ``rows`` = batch * beams, ``columns`` =
the vocabulary, padded to a multiple of CHUNK.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from relakit.broken_model import BrokenModelError
from relakit.data.tokenizer import END, PAD
from relakit.decode.shortlist import TokenIds
from relakit.ops.precision import wide

CHUNK: Final = 64
"""Columns that are searched together, and only if their maximum is high enough."""
LARGEST_PLAIN: Final = 60.0
"""exp() of numbers up to this size neither overflows nor vanishes in float32, so the largest logit
need not be subtracted first, which would take longer than the rest."""
NORMALISER_BYTES: Final = 2**19
"""Bytes of logits that are exponentiated at once: what stays in a processor's cache."""


class Candidates(NamedTuple):
    """The best continuations of each sentence, best first; ``[batch, count]`` each."""

    scores: Tensor
    """Log-probability of the whole hypothesis."""
    beams: Tensor
    """The beam that it continues."""
    tokens: Tensor
    """The token that it adds."""


class OutputLayer:
    """Computes the logits of every token, in a whole number of chunks."""

    def __init__(self, weight: Tensor) -> None:
        """``weight``: the embeddings ``[vocabulary, dim]``."""
        self.vocabulary = weight.size(0)
        # A transposed copy: BLAS is faster with it when rows are few.
        filled = F.pad(weight.detach(), (0, 0, 0, -self.vocabulary % CHUNK))
        self.weight = filled.t().contiguous()

    def __call__(self, states: Tensor) -> Tensor:
        """``[rows, dim]`` to ``[rows, columns]``, not in half precision; -inf in padding."""
        logits = wide(states @ self.weight)
        logits[:, self.vocabulary :] = -math.inf
        return logits

    def log_probabilities(self, states: Tensor) -> Tensor:
        """The same, normalised to log-probabilities."""
        logits = self(states)
        return logits.sub_(finite_normalisers(logits)[:, None])


def finite_normalisers(logits: Tensor) -> Tensor:
    """`log_normalisers`; BrokenModelError if one is not finite."""
    normalisers = log_normalisers(logits)
    if not bool(normalisers.isfinite().all()):
        raise BrokenModelError
    return normalisers


def log_normalisers(logits: Tensor) -> Tensor:
    """log(sum(exp(logits))) of each row: ``[rows, columns]`` to ``[rows]``."""
    at_once = max(1, NORMALISER_BYTES // (logits.size(1) * logits.element_size()))
    blocks = torch.split(logits, at_once)
    normalisers = torch.cat([block.exp().sum(1) for block in blocks]).log_()
    if float(normalisers.abs().amax()) < LARGEST_PLAIN:
        return normalisers
    return torch.cat([block.logsumexp(1) for block in blocks])


def forbid(logits: Tensor, tokens: Sequence[int]) -> None:
    """Rule out these tokens, in place."""
    for token in tokens:
        logits[:, token] = -math.inf


def allow_only(logits: Tensor, rows: Tensor, tokens: Sequence[int]) -> None:
    """Rule out all tokens but these in the given rows, in place."""
    places = rows[:, None], torch.tensor(tokens, device=logits.device)
    kept = logits[places]
    logits[rows] = -math.inf
    logits[places] = kept


def apply_rules(
    logits: Tensor,
    beams: int,
    *,
    forbidden: Sequence[int],
    must_end: Sequence[bool] | None,
    end: int = END,
) -> None:
    """Rule out tokens that must not follow, in place; arguments as in `RunningHypotheses`.

    ``end`` is the column of the end-of-sentence token.
    """
    forbid(logits, forbidden)
    if must_end is not None:
        rows = torch.tensor(must_end, device=logits.device).repeat_interleave(beams)
        allow_only(logits, rows.nonzero().view(-1), [end])


def keep_to_lists(
    log_probabilities: Tensor, beams: int, allowed: Sequence[TokenIds | None]
) -> None:
    """Rule out tokens not in a sentence's list, in place; the others' probabilities add up to 1.

    ``log_probabilities`` is ``[rows, columns]``; a sentence whose list is None keeps all.
    """
    for sentence, tokens in enumerate(allowed):
        if tokens is None:
            continue
        rows = slice(sentence * beams, (sentence + 1) * beams)
        columns = torch.from_numpy(tokens).to(log_probabilities.device)
        kept = log_probabilities[rows].index_select(1, columns).log_softmax(1)
        log_probabilities[rows] = -math.inf
        log_probabilities[rows].index_copy_(1, columns, kept)


class ListedOutput:
    """`OutputLayer` for only the tokens in each sentence's list, with a column for each."""

    def __init__(self, output: OutputLayer, allowed: Sequence[TokenIds], *, beams: int) -> None:
        device = output.weight.device
        longest = max((len(tokens) for tokens in allowed), default=0)
        columns = longest + -longest % CHUNK
        self.beams = beams
        self.tokens = torch.full((len(allowed), columns), PAD, device=device)  # [batch, columns]
        self.is_empty = torch.ones(len(allowed), 1, columns, dtype=torch.bool, device=device)
        for sentence, tokens in enumerate(allowed):
            self.tokens[sentence, : len(tokens)] = torch.from_numpy(tokens).to(device)
            self.is_empty[sentence, :, : len(tokens)] = False
        chosen = output.weight.index_select(1, self.tokens.view(-1))
        # [batch, dim, columns]
        self.weight = chosen.view(-1, len(allowed), columns).transpose(0, 1).contiguous()

    def candidates(
        self,
        states: Tensor,
        scores: Tensor,
        count: int,
        *,
        forbidden: Sequence[int],
        must_end: Sequence[bool] | None,
    ) -> Candidates:
        """Like `RunningHypotheses.candidates`, from the states ``[rows, dim]`` after a step."""
        logits = wide(states.view(-1, self.beams, states.size(1)) @ self.weight)
        logits = logits.masked_fill_(self.is_empty, -math.inf).flatten(0, 1)  # [rows, columns]
        normalisers = finite_normalisers(logits)
        apply_rules(
            logits,
            self.beams,
            forbidden=[0] if END in forbidden else [],  # lists have no other forbidden tokens
            must_end=must_end,
            end=0,
        )
        best = best_candidates(logits, scores - normalisers.view(scores.shape), count)
        return best._replace(tokens=self.tokens.gather(1, best.tokens))

    def keep(self, sentences: Tensor) -> None:
        """Drop all sentences but those at these indices."""
        self.tokens = self.tokens.index_select(0, sentences)
        self.is_empty = self.is_empty.index_select(0, sentences)
        self.weight = self.weight.index_select(0, sentences)


def best_candidates(logits: Tensor, offsets: Tensor, count: int) -> Candidates:
    """The ``count`` best pairs of a beam and a token, by ``offset + logit``.

    Exact: a number among the best is in a chunk whose maximum is among the best, so only those
    chunks are searched. Of candidates with equal scores any may be chosen, but always the same.

    Args:
        logits: ``[rows, columns]``.
        offsets: ``[batch, beams]``, to be added to a beam's logits.
        count: how many; at most beams * columns.
    """
    batch, beams = offsets.shape
    rows, columns = logits.shape
    chunks = columns // CHUNK
    chunked = logits.view(rows, chunks, CHUNK)
    maxima = (chunked.amax(2).view(batch, beams, chunks) + offsets[:, :, None]).view(batch, -1)
    chosen = maxima.topk(min(count, beams * chunks)).indices  # beam * chunks + chunk
    first = torch.arange(0, rows * chunks, beams * chunks, device=logits.device)[:, None]
    inside = chunked.view(-1, CHUNK).index_select(0, (chosen + first).view(-1))
    beam_of_chunk = chosen // chunks
    totals = inside.view(batch, -1, CHUNK) + offsets.gather(1, beam_of_chunk)[:, :, None]
    scores, places = totals.view(batch, -1).topk(count)
    chunk_places = places // CHUNK
    chunk = chosen.gather(1, chunk_places) % chunks
    return Candidates(scores, beam_of_chunk.gather(1, chunk_places), chunk * CHUNK + places % CHUNK)

"""Drawing the next token. What is drawn for a sentence depends on nothing else in its batch."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from relakit.decode.best_tokens import Candidates
from relakit.decode.settings import SearchSettings


def random_numbers(seed: int, sentence: int, samples: int) -> list[random.Random]:
    """The random numbers for each sample of a sentence, the same on every machine."""
    return [random.Random(f"{seed} {sentence} {sample}") for sample in range(samples)]


def draw(
    log_probabilities: Tensor,
    scores: Tensor,
    settings: SearchSettings,
    numbers: Sequence[random.Random],
) -> Candidates:
    """Draw the next token for every sample.

    Args:
        log_probabilities: of all tokens, -inf for those ruled out, ``[rows, columns]``.
        scores: log-probabilities so far, ``[batch, samples]``.
        settings: temperature, top_k and top_p.
        numbers: where each row's random number comes from.

    Returns:
        One candidate for each sample, in its place. Scores are the model's own, regardless of
        temperature, top_k and top_p.
    """
    # Relative to the likeliest: a very low temperature would make -inf of all of them.
    best = log_probabilities.amax(1, keepdim=True)
    logits = (log_probabilities.double() - best) / settings.temperature
    columns = None
    if settings.top_k is not None or settings.top_p < 1:
        count = min(settings.top_k or logits.size(1), logits.size(1))
        logits, columns = logits.topk(count)  # [rows, count], the likeliest first
    shares = logits.softmax(1)
    if settings.top_p < 1:
        # The tokens before a token must have less than top_p together.
        shares[shares.cumsum(1) - shares >= settings.top_p] = 0.0
    upper = shares.cumsum(1)
    total = upper[:, -1:].contiguous()
    uniform = torch.tensor([[row.random()] for row in numbers], dtype=torch.float64)
    places = torch.searchsorted(upper, uniform.to(upper.device) * total, right=True)
    # Rounding might put it past the last token that has a share.
    places = torch.minimum(places, torch.searchsorted(upper, total))
    tokens = places if columns is None else columns.gather(1, places)
    drawn = log_probabilities.gather(1, tokens).float().view(scores.shape)
    beams = torch.arange(scores.size(1), device=scores.device).expand(scores.shape)
    return Candidates(scores + drawn, beams, tokens.view(scores.shape))

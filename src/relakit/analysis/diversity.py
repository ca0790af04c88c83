"""How much the heads of a layer disagree: generalised Jensen-Shannon divergence."""

import torch
from torch import Tensor

from relakit.analysis.rates import Share, by_head
from relakit.analysis.sparsity import null_queries


def head_diversity(
    weights: Tensor, valid: Tensor | None = None, temperature: float | None = None
) -> Tensor:
    """The divergence between heads in nats, averaged over queries: 0 if all heads agree.

    For each query, the entropy of the mean over heads minus the mean of the heads' entropies. It
    is at most log(heads).

    Args:
        weights: ``[..., heads, queries, keys]``.
        valid: True where a key was not masked; broadcasts to the weights. None: no masking.
            Queries without a valid key do not count.
        temperature: None uses a head's weights as its distribution: they must sum to 1. A number τ
            uses softmax(weights^τ) over the valid keys, including those with weight 0; a query
            whose weights are all 0 gets a distribution that puts everything on one extra key,
            which all heads share. A negative weight keeps its sign.

    Returns:
        A scalar; NaN if no query counts.
    """
    return diversity_share(weights, valid, temperature).rate()


def diversity_share(
    weights: Tensor, valid: Tensor | None = None, temperature: float | None = None
) -> Share:
    """`head_diversity` as a ratio: the sum over queries, and the number of queries."""
    weights, valid = by_head(weights, valid)
    weights = weights * valid
    if temperature is None:
        entropies = _entropy(weights)  # [batch, heads, queries]
        mean_entropy = _entropy(weights.mean(1))  # [batch, queries]
    else:
        null = null_queries(weights, valid)
        probabilities, entropies = _softmax_of_power(weights, valid, temperature)
        entropies = entropies.masked_fill(null, 0.0)
        mean = (probabilities * ~null[..., None]).mean(1)
        null_mean = null.to(mean.dtype).mean(1)
        mean_entropy = _entropy(mean) + _entropy(null_mean[..., None])
    counted = valid.any(-1).any(1)  # [batch, queries]
    divergence = (mean_entropy - entropies.mean(1)).masked_fill(~counted, 0.0)
    # Rounding may leave a value slightly below 0.
    return Share(divergence.sum(dtype=torch.float64).clamp(min=0.0), counted.sum())


def _softmax_of_power(weights: Tensor, valid: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """softmax(weights^temperature) over valid keys, and its entropies. Other keys have weight 0."""
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    if bool((weights < 0).any()):
        scores = weights.abs().pow(temperature).copysign(weights)
        largest = scores.masked_fill(~valid, -torch.inf).amax(-1, keepdim=True)
        largest = largest.masked_fill(largest == -torch.inf, 0.0)  # there is no valid key
    else:
        scores = weights.pow(temperature)
        largest = scores.amax(-1, keepdim=True)
    scores -= largest
    exponentials = scores.exp().mul_(valid)
    total = exponentials.sum(-1, keepdim=True).clamp_(min=torch.finfo(scores.dtype).tiny)
    probabilities = exponentials.div_(total)
    # -sum p log p with log p = score - log total.
    return probabilities, total.squeeze(-1).log() - (probabilities * scores).sum(-1)


def _entropy(probabilities: Tensor) -> Tensor:
    # The smallest normal number stands in for 0, whose term is 0 either way.
    logarithms = probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()
    return -(probabilities * logarithms).sum(-1)

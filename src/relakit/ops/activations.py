"""Activations: from attention scores to attention weights.

Each function takes ``scores`` (after scaling and any additive mask) and ``valid``, a boolean
tensor that broadcasts to the scores and is False where a key must not be seen (``None``: every key
may be seen). Both have the shape ``[..., queries, keys]``. A masked key behaves as if it were not
in the sequence: its weight is exactly 0, it takes no part in any normalisation or count, and no
gradient passes through it. A query without a valid key gets a row of zeros.

The formulas are listed in ``docs/attention.md``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from relakit.ops.options import ActivationName

LEAKY_SLOPE: Final = 0.01
"""Slope of ``leaky_relu`` below the threshold. The paper names none; this is PyTorch's default."""

SOFTPICK_EPS: Final = 1e-8


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """How the scores of the pointwise activations are shifted, raised and divided."""

    threshold: float | Tensor = 0.0
    """Subtracted from every score; a tensor broadcasts to the scores and receives gradients."""
    power: float = 1.0
    """The rectified score is raised to this power."""
    length_exponent: float = 0.0
    """Weights are divided by (number of valid keys) to this power."""


def softmax(scores: Tensor, valid: Tensor | None, options: ScoreOptions) -> Tensor:
    """exp(s_j) / sum_k exp(s_k); a row without a valid key is 0, as in PyTorch's SDPA."""
    if valid is None:
        return torch.softmax(scores, dim=-1)
    # Softmax of a fully masked row, all -inf, would give NaN as value and gradient. It is computed
    # from zeros instead and then set to 0, so that it reaches neither the output nor a gradient.
    scores = scores.masked_fill(~valid & valid.any(-1, keepdim=True), -math.inf)
    scores = scores.masked_fill(~valid.any(-1, keepdim=True), 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(~valid, 0.0)


def sparsemax(scores: Tensor, valid: Tensor | None, options: ScoreOptions) -> Tensor:
    """Euclidean projection of the scores onto the simplex (Martins and Astudillo, 2016).

    ``relu(s - tau)`` with tau such that the row sums to 1. Sorting only finds which keys are in the
    support, without gradient; tau itself is a differentiable function of the scores in the support,
    so autograd gives the exact Jacobian.
    """
    if scores.size(-1) == 0:
        return scores
    centred, ordered, ranks = _centre_and_sort(scores, valid)
    with torch.no_grad():
        size = (1 + ranks * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
    support, count = _support(centred, ordered, size)
    total = torch.where(support, centred, 0.0).sum(-1, keepdim=True)
    tau = (total - 1) / count
    return torch.where(support, centred - tau, 0.0).clamp(min=0.0)


def entmax15(scores: Tensor, valid: Tensor | None, options: ScoreOptions) -> Tensor:
    """1.5-entmax (Peters et al., 2019): ``relu(s / 2 - tau)^2`` with rows that sum to 1."""
    if scores.size(-1) == 0:
        return scores
    centred, ordered, ranks = _centre_and_sort(scores / 2, valid)
    with torch.no_grad():
        mean = ordered.cumsum(-1) / ranks
        spread = ordered.square().cumsum(-1) - ranks * mean.square()
        tau_by_size = mean - ((1 - spread) / ranks).clamp(min=0.0).sqrt()
        size = (tau_by_size <= ordered).sum(-1, keepdim=True)
    support, count = _support(centred, ordered, size)
    in_support = torch.where(support, centred, 0.0)
    mean = in_support.sum(-1, keepdim=True) / count
    spread = torch.where(support, (in_support - mean).square(), 0.0).sum(-1, keepdim=True)
    tau = mean - ((1 - spread) / count).clamp(min=torch.finfo(scores.dtype).tiny).sqrt()
    return torch.where(support, in_support - tau, 0.0).clamp(min=0.0).square()


def relu(scores: Tensor, valid: Tensor | None, options: ScoreOptions) -> Tensor:
    """max(0, s - threshold)^power / n^length_exponent: eq. 3 of the paper for the defaults."""
    shifted = _shift(scores, options)  # masked scores, -inf or not, are safe in a ReLU
    if options.power == 1.0:
        return _finish(F.relu(shifted), valid, options)
    kept = ~(shifted <= 0)  # rather than "> 0": NaN must not vanish
    if valid is not None:
        kept = kept & valid  # a masked NaN would come back in the gradient, as 0 times NaN
    # Zeros are replaced by 1 before raising: for powers below 1 the derivative at 0 is infinite,
    # and infinity times a zero gradient would be NaN.
    raised = torch.where(kept, shifted, 1.0).pow(options.power)
    return _finish(torch.where(kept, raised, 0.0), valid, options)


def gelu(scores: Tensor, valid: Tensor | None, options: ScoreOptions) -> Tensor:
    """x * Phi(x) with x = s - threshold (Hendrycks and Gimpel, 2016); exact, no tanh."""
    scores = _hide_masked(scores, valid)  # gelu(-inf) is NaN
    return _finish(F.gelu(_shift(scores, options)), valid, options)


def leaky_relu(scores: Tensor, valid: Tensor | None, options: ScoreOptions) -> Tensor:
    """x above 0, LEAKY_SLOPE * x below, with x = s - threshold."""
    return _finish(F.leaky_relu(_shift(scores, options), LEAKY_SLOPE), valid, options)


def sigmoid(scores: Tensor, valid: Tensor | None, options: ScoreOptions) -> Tensor:
    """sigmoid(s - log n), n = number of valid keys (Ramapuram et al., 2024)."""
    bias = _valid_keys(scores, valid).clamp(min=1).log()
    return _hide_masked(torch.sigmoid(scores - bias), valid)


def softpick(scores: Tensor, valid: Tensor | None, options: ScoreOptions) -> Tensor:
    """relu(e^s - 1) / (sum_k |e^s_k - 1| + eps): rectified softmax (Zuhri et al., 2025)."""
    if scores.size(-1) == 0:
        return scores
    scores = _hide_masked(scores, valid)
    # Numerator, sum and eps are all multiplied by e^-m, which cancels, so that nothing overflows.
    # m is at least 0, because e^-m must not overflow where all scores are very negative.
    maximum = scores.detach().amax(-1, keepdim=True).clamp(min=0.0)
    small = torch.exp(-maximum)
    # e^(s - m) - e^-m, computed with expm1 on either side of 0: for small scores the plain
    # difference would cancel to nothing. Masked keys, whose score is now 0, get 0.
    above, below = scores.clamp(min=0.0), scores.clamp(max=0.0)
    difference = torch.exp(above - maximum) * -torch.expm1(-above) + small * torch.expm1(below)
    return F.relu(difference) / (difference.abs().sum(-1, keepdim=True) + SOFTPICK_EPS * small)


Weigh: TypeAlias = Callable[[Tensor, Tensor | None, ScoreOptions], Tensor]

ACTIVATIONS: Final[dict[ActivationName, Weigh]] = {
    "softmax": softmax,
    "sparsemax": sparsemax,
    "entmax15": entmax15,
    "relu": relu,
    "gelu": gelu,
    "leaky_relu": leaky_relu,
    "sigmoid": sigmoid,
    "softpick": softpick,
}


def _shift(scores: Tensor, options: ScoreOptions) -> Tensor:
    if isinstance(options.threshold, Tensor) or options.threshold != 0:
        return scores - options.threshold
    return scores


def _finish(weights: Tensor, valid: Tensor | None, options: ScoreOptions) -> Tensor:
    weights = _hide_masked(weights, valid)
    if options.length_exponent == 0:
        return weights
    return weights / _valid_keys(weights, valid).clamp(min=1).pow(options.length_exponent)


def _hide_masked(tensor: Tensor, valid: Tensor | None) -> Tensor:
    return tensor if valid is None else tensor.masked_fill(~valid, 0.0)


def _valid_keys(scores: Tensor, valid: Tensor | None) -> Tensor:
    """Number of valid keys for each query: [..., queries, 1], in the dtype of the scores."""
    if valid is None:
        return scores.new_full((1,), scores.size(-1))
    return valid.expand_as(scores).sum(-1, keepdim=True).to(scores.dtype)


def hide_from_projection(scores: Tensor, valid: Tensor | None) -> Tensor:
    """Masked scores as -inf, which projections onto the simplex give no weight."""
    return scores if valid is None else scores.masked_fill(~valid, -math.inf)


def _centre_and_sort(scores: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Scores minus their row's maximum, the same in descending order, and the ranks 1, 2, ..."""
    scores = hide_from_projection(scores, valid)
    maximum = scores.detach().amax(-1, keepdim=True)
    # In a row without a valid key, -inf minus -inf would be NaN.
    centred = scores - maximum.masked_fill(maximum == -math.inf, 0.0)
    ordered = centred.detach().sort(-1, descending=True).values
    ranks = torch.arange(1, scores.size(-1) + 1, device=scores.device, dtype=scores.dtype)
    return centred, ordered, ranks


def _support(centred: Tensor, ordered: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Which keys are among the ``size`` highest of their row, including ties, and how many.

    The count is at least 1, so that it can be a divisor.
    """
    smallest = ordered.gather(-1, size.clamp(min=1) - 1)
    # "not below" rather than "at least": NaN stays in the support, and thus in the result.
    support = ~(centred < smallest) & (centred != -math.inf)
    return support, support.sum(-1, keepdim=True).clamp(min=1)

"""Sparsemax and 1.5-entmax in C++: from scores to weights, and back to the scores' gradients.

The extension finds each row's threshold by Newton's method, without sorting, and keeps two numbers
per row for the backward pass instead of a dozen tensors of the size of the scores.
"""

from typing import Any, Final

import torch
from torch import Tensor

from relakit.ops.activations import ScoreOptions, Weigh, hide_from_projection
from relakit.ops.native.connection import connected_extension
from relakit.ops.options import ActivationName


class SimplexWeights(torch.autograd.Function):
    """Weights from float32 scores in which masked keys are -inf."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, is_squared: bool) -> Tensor:
        scores = scores.contiguous()
        computed = connected_extension().simplex(scores, is_squared)
        if computed is None:
            raise RuntimeError(
                f"the C++ kernels refused scores of {scores.dtype} on {scores.device}; use "
                "backend='reference'"
            )
        weights, rows = computed
        ctx.save_for_backward(scores, rows, weights)
        ctx.is_squared = is_squared
        return weights  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, grad_weights: Tensor) -> tuple[Tensor, None]:
        scores, rows, weights = ctx.saved_tensors
        gradient: Tensor | None = None
        if not torch.is_grad_enabled():
            gradient = connected_extension().simplex_backward(
                grad_weights.contiguous(), scores, rows, ctx.is_squared
            )
        if gradient is None:
            gradient = simplex_gradient(grad_weights, weights, ctx.is_squared)
        return gradient, None


def simplex_gradient(grad_weights: Tensor, weights: Tensor, is_squared: bool) -> Tensor:
    """The gradient of the scores in plain PyTorch, which can differentiate it again.

    ``weights`` must then be the result of a recorded call, as saved tensors are.
    """
    is_positive = weights > 0
    if is_squared:
        # The root's derivative at 0 is infinite, and infinity times 0 would be NaN.
        slopes = torch.where(is_positive, weights, 1.0).sqrt().where(is_positive, 0.0)
    else:
        slopes = is_positive.to(weights.dtype)
    totals = slopes.sum(-1, keepdim=True)
    mean = (slopes * grad_weights).sum(-1, keepdim=True) / totals.masked_fill(totals == 0, 1.0)
    return slopes * (grad_weights - mean)


def sparsemax(scores: Tensor, valid: Tensor | None, options: ScoreOptions) -> Tensor:
    """As in `relakit.ops.activations`."""
    weights: Tensor = SimplexWeights.apply(hide_from_projection(scores, valid), False)  # type: ignore[no-untyped-call]
    return weights


def entmax15(scores: Tensor, valid: Tensor | None, options: ScoreOptions) -> Tensor:
    """As in `relakit.ops.activations`."""
    weights: Tensor = SimplexWeights.apply(hide_from_projection(scores, valid), True)  # type: ignore[no-untyped-call]
    return weights


SIMPLEX_ACTIVATIONS: Final[dict[ActivationName, Weigh]] = {
    "sparsemax": sparsemax,
    "entmax15": entmax15,
}
"""The activations that the extension computes from scores, row by row."""

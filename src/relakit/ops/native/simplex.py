"""Sparsemax and 1.5-entmax in C++: from scores to weights, and back to the scores' gradients.

The extension finds each row's threshold by Newton's method, without sorting. Backward needs nothing
but the weights, which the product with the values keeps anyway.
"""

from typing import Any, Final

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from relakit.ops.activations import ScoreOptions, Weigh, hide_from_projection
from relakit.ops.native.connection import connected_extension
from relakit.ops.options import ActivationName


class SimplexWeights(torch.autograd.Function):
    """Weights from float32 scores in which masked keys are -inf."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, is_squared: bool) -> Tensor:
        weights: Tensor | None = connected_extension().simplex(scores.contiguous(), is_squared)
        if weights is None:
            raise RuntimeError(
                f"the C++ kernels refused scores of {scores.dtype} on {scores.device}; use "
                "backend='reference'"
            )
        ctx.save_for_backward(weights)
        ctx.is_squared = is_squared
        return weights

    @staticmethod
    def backward(ctx: Any, grad_weights: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        gradient: Tensor | None = None
        if not (torch.is_grad_enabled() or is_dynamo_compiling()):
            gradient = connected_extension().simplex_backward(
                grad_weights.contiguous(), weights, ctx.is_squared
            )
        if gradient is None:
            gradient = simplex_gradient(grad_weights, weights, ctx.is_squared)
        return gradient, None


def simplex_gradient(grad_weights: Tensor, weights: Tensor, is_squared: bool) -> Tensor:
    """The gradient of the scores in plain PyTorch, which can differentiate it again.

    ``weights`` must then be the result of a recorded call, as saved tensors are.
    """
    has_weight = ~(weights <= 0)  # rather than "> 0": the root of NaN must not vanish
    if is_squared:
        # The root's derivative at 0 is infinite, and infinity times 0 would be NaN.
        slopes = torch.where(has_weight, weights, 1.0).sqrt().where(has_weight, 0.0)
    else:
        slopes = has_weight.to(weights.dtype)
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

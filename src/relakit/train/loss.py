"""Label-smoothed cross-entropy straight from the decoder's states, without a tensor of all logits.

For a vocabulary of 8,000 and 2,000 target tokens the logits are 64 MB, and their gradient as much
again. Here they are computed in chunks of rows, and the gradients of each chunk while it is in the
cache.
"""

from typing import Any, Final, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.compiler import is_dynamo_compiling

from relakit.ops.native.connection import connected_extension
from relakit.train.recipe import LossMean, SmoothingOver

CHUNK_BYTES: Final = 8 << 20
"""Size of the logits computed at a time. Each chunk adds to the gradient of the whole output
matrix, so small ones take longer."""
FEWEST_ROWS: Final = 128
"""The fewest rows of logits in a chunk, however large the vocabulary is."""


class Loss(NamedTuple):
    """Sums; divide them by the number of tokens or sentences for means."""

    smoothed: Tensor
    """What is minimised: cross-entropy against the smoothed targets, summed over tokens, or over
    sentences' means; has a gradient"""
    negative_log_likelihood: Tensor
    """Cross-entropy against the targets themselves, without smoothing, summed over tokens"""
    tokens: int


def smoothed_loss(
    states: Tensor,
    weight: Tensor,
    targets: Tensor,
    *,
    smoothing: float,
    padding: int,
    smoothing_over: SmoothingOver = "all",
    mean_over: LossMean = "tokens",
) -> Loss:
    """The loss of predicting ``targets`` from ``states`` with the output matrix ``weight``.

    A target's probability is 1 - smoothing, plus its share of ``smoothing`` if that is spread over
    all tokens, as in `torch.nn.functional.cross_entropy`.

    Args:
        states: ``[batch, positions, dim]``.
        weight: ``[vocabulary, dim]``.
        targets: ``[batch, positions]`` token ids.
        smoothing: share of the probability that is spread evenly.
        padding: the token id to ignore.
        smoothing_over: the tokens to spread it over.
        mean_over: with ``"sentences"``, every sentence counts the same, however long it is.
    """
    if smoothing_over == "wrong":
        # The same as spreading a little more over all of them, the right one included.
        smoothing *= weight.size(0) / (weight.size(0) - 1)
    kept = (targets != padding).reshape(-1).nonzero().squeeze(1)
    states = states.reshape(-1, states.size(-1)).index_select(0, kept)
    ids = targets.reshape(-1).index_select(0, kept)
    shares = None
    if mean_over == "sentences":
        lengths = (targets != padding).sum(1, keepdim=True)
        shares = (1.0 / lengths).float().expand_as(targets).reshape(-1).index_select(0, kept)
    # Inside of it, autograd is always off.
    wants_gradients = torch.is_grad_enabled() and (states.requires_grad or weight.requires_grad)
    smoothed, likelihood = _ChunkedLoss.apply(  # type: ignore[no-untyped-call]
        states, weight, ids, smoothing, shares, wants_gradients
    )
    return Loss(smoothed, likelihood, kept.numel())


class _ChunkedLoss(torch.autograd.Function):
    """Sums of smoothed loss and negative log-likelihood; gradients are ready after forward.

    The smoothed loss of each row is multiplied by its entry in ``shares``, if given. There are no
    second derivatives.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: float,
        shares: Tensor | None,
        wants_gradients: bool,
    ) -> tuple[Tensor, Tensor]:
        device = states.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        with torch.autocast(device, enabled=False):
            matrix = weight if dtype is None else weight.to(dtype)
            inputs = states.to(matrix.dtype)
            sums = torch.zeros(2, dtype=torch.float32, device=states.device)
            state_gradient = torch.empty_like(inputs) if wants_gradients else None
            weight_gradient: Tensor | None = None
            chunk = rows_at_a_time(matrix)
            for start in range(0, states.size(0), chunk):
                rows = slice(start, start + chunk)
                row_shares = None if shares is None else shares[rows]
                losses, gradient = _losses(
                    inputs[rows] @ matrix.t(),
                    targets[rows],
                    smoothing,
                    row_shares,
                    wants_gradient=wants_gradients,
                )
                sums[0] += losses[:, 0].sum() if row_shares is None else losses[:, 0] @ row_shares
                sums[1] += losses[:, 1].sum()
                if state_gradient is None:
                    continue
                torch.mm(gradient, matrix, out=state_gradient[rows])
                if weight_gradient is None:
                    weight_gradient = (gradient.t() @ inputs[rows]).to(weight.dtype)
                elif dtype is None:
                    weight_gradient.addmm_(gradient.t(), inputs[rows])
                else:
                    weight_gradient += gradient.t() @ inputs[rows]
        if state_gradient is not None:
            if weight_gradient is None:  # there are no rows
                weight_gradient = torch.zeros_like(weight)
            ctx.save_for_backward(state_gradient.to(states.dtype), weight_gradient)
        smoothed, likelihood = sums.unbind()
        ctx.mark_non_differentiable(likelihood)
        return smoothed, likelihood

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        state_gradient, weight_gradient = ctx.saved_tensors
        return state_gradient * scale, weight_gradient * scale, None, None, None, None


def rows_at_a_time(matrix: Tensor) -> int:
    """How many rows of logits to compute at a time with an output matrix ``[vocabulary, dim]``."""
    return max(FEWEST_ROWS, CHUNK_BYTES // (matrix.size(0) * matrix.element_size()))


def _losses(
    logits: Tensor,
    targets: Tensor,
    smoothing: float,
    shares: Tensor | None,
    *,
    wants_gradient: bool,
) -> tuple[Tensor, Tensor]:
    """Smoothed losses and negative log-likelihoods, ``[rows, 2]``, and the logits' gradient.

    The logits are overwritten. The gradient has their dtype; without ``wants_gradient`` it means
    nothing.
    """
    extension = None if is_dynamo_compiling() else connected_extension()
    if extension is not None:
        losses = extension.smoothed_losses(logits, targets, smoothing, shares, wants_gradient)
        if losses is not None:
            return losses, logits
    return plain_losses(logits, targets, smoothing, shares)


def plain_losses(
    logits: Tensor, targets: Tensor, smoothing: float, shares: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The same in plain PyTorch."""
    dtype = logits.dtype
    logits = logits.float()
    logits -= logits.amax(-1, keepdim=True)
    chosen = logits.gather(1, targets[:, None]).squeeze(1)
    spread = logits.mean(-1)
    exponentials = logits.exp_()
    totals = exponentials.sum(-1, keepdim=True)
    log_totals = totals.log().squeeze(1)
    smoothed = log_totals - (1 - smoothing) * chosen - smoothing * spread
    losses = torch.stack([smoothed, log_totals - chosen], dim=1)
    gradient = exponentials.mul_(totals.reciprocal_())
    gradient -= smoothing / logits.size(1)
    target_share = gradient.new_full((), smoothing - 1).expand(targets.size(0), 1)
    gradient.scatter_add_(1, targets[:, None], target_share)
    if shares is not None:
        gradient.mul_(shares[:, None])
    return losses, gradient.to(dtype)

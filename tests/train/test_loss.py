"""The chunked loss against PyTorch's cross-entropy over all logits."""

import pytest
import torch
import torch.nn.functional as F

from relakit.train.loss import CHUNK, LossMean, SmoothingOver, smoothed_loss

PADDING = 0


def inputs(rows: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(rows)
    states = torch.randn(1, rows, 12, dtype=dtype, requires_grad=True)
    weight = torch.randn(37, 12, dtype=dtype, requires_grad=True)
    targets = torch.randint(0, 37, (1, rows))
    targets[0, 0] = 5  # at least one that counts
    return states, weight, targets


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, CHUNK - 1, CHUNK, 2 * CHUNK + 3])
def test_equals_cross_entropy(rows: int, smoothing: float) -> None:
    states, weight, targets = inputs(rows)
    loss = smoothed_loss(states, weight, targets, smoothing=smoothing, padding=PADDING)
    (loss.smoothed * 0.5).backward()
    found = (states.grad, weight.grad)
    states.grad = weight.grad = None
    logits = (states @ weight.t())[0]
    expected = F.cross_entropy(
        logits, targets[0], ignore_index=PADDING, reduction="sum", label_smoothing=smoothing
    )
    (expected * 0.5).backward()
    assert loss.smoothed.item() == pytest.approx(expected.item(), rel=1e-6)
    likelihood = F.cross_entropy(logits, targets[0], ignore_index=PADDING, reduction="sum")
    assert loss.negative_log_likelihood.item() == pytest.approx(likelihood.item(), rel=1e-6)
    assert loss.tokens == int((targets != PADDING).sum())
    # The softmax is computed in single precision.
    torch.testing.assert_close(found[0], states.grad, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found[1], weight.grad, rtol=1e-5, atol=1e-5)


SENTENCES = torch.tensor([[5, 9, 3, 0, 0], [7, 3, 0, 0, 0], [1, 2, 4, 8, 3]])


def plain_loss(
    states: torch.Tensor,
    weight: torch.Tensor,
    *,
    smoothing: float,
    smoothing_over: str,
    mean_over: str,
) -> torch.Tensor:
    """The sum of SENTENCES' losses, from the definition: one probability per token of each row."""
    vocabulary = weight.size(0)
    total = states.new_zeros(())
    for sentence, targets in enumerate(SENTENCES.tolist()):
        tokens = [token for token in targets if token != PADDING]
        losses = []
        for place, token in enumerate(tokens):
            log_probabilities = (weight @ states[sentence, place]).log_softmax(0)
            others = smoothing / (vocabulary if smoothing_over == "all" else vocabulary - 1)
            wanted = torch.full((vocabulary,), others, dtype=states.dtype)
            wanted[token] = 1 - smoothing + (others if smoothing_over == "all" else 0.0)
            assert wanted.sum().item() == pytest.approx(1.0)
            losses.append(-(wanted * log_probabilities).sum())
        summed = torch.stack(losses).sum()
        total = total + (summed / len(tokens) if mean_over == "sentences" else summed)
    return total


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("smoothing_over", ["all", "wrong"])
@pytest.mark.parametrize("mean_over", ["tokens", "sentences"])
def test_equals_the_definition(
    smoothing: float, smoothing_over: SmoothingOver, mean_over: LossMean
) -> None:
    torch.manual_seed(0)
    states = torch.randn(3, 5, 12, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(11, 12, dtype=torch.float64, requires_grad=True)
    loss = smoothed_loss(
        states,
        weight,
        SENTENCES,
        smoothing=smoothing,
        padding=PADDING,
        smoothing_over=smoothing_over,
        mean_over=mean_over,
    )
    found = torch.autograd.grad(loss.smoothed, (states, weight))
    expected = plain_loss(
        states, weight, smoothing=smoothing, smoothing_over=smoothing_over, mean_over=mean_over
    )
    assert loss.smoothed.item() == pytest.approx(expected.item(), rel=1e-6)
    for ours, theirs in zip(found, torch.autograd.grad(expected, (states, weight)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    # The likelihood is always that of the tokens: what runs are compared by.
    likelihood = plain_loss(states, weight, smoothing=0.0, smoothing_over="all", mean_over="tokens")
    assert loss.negative_log_likelihood.item() == pytest.approx(likelihood.item(), rel=1e-6)


def test_padding_has_no_gradient() -> None:
    states, weight, targets = inputs(9)
    targets[0, 4:] = PADDING
    smoothed_loss(states, weight, targets, smoothing=0.1, padding=PADDING).smoothed.backward()
    assert states.grad is not None
    assert not states.grad[0, 4:].any()
    assert states.grad[0, :4].any()


def test_large_logits_stay_finite() -> None:
    states, weight, targets = inputs(5, torch.float32)
    loss = smoothed_loss(states * 1e4, weight, targets, smoothing=0.1, padding=PADDING)
    loss.smoothed.backward()
    assert loss.smoothed.isfinite()
    assert states.grad is not None
    assert states.grad.isfinite().all()


def test_follows_autocast() -> None:
    states, weight, targets = inputs(70, torch.float32)
    exact = smoothed_loss(states, weight, targets, smoothing=0.1, padding=PADDING)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = smoothed_loss(states, weight, targets, smoothing=0.1, padding=PADDING)
    assert rounded.smoothed.item() != exact.smoothed.item()
    assert rounded.smoothed.item() == pytest.approx(exact.smoothed.item(), rel=0.02)
    rounded.smoothed.backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32


def test_without_gradients() -> None:
    states, weight, targets = inputs(20)
    with torch.inference_mode():
        loss = smoothed_loss(states, weight, targets, smoothing=0.0, padding=PADDING)
    assert not loss.smoothed.requires_grad

"""The chunked loss against PyTorch's cross-entropy over all logits."""

import math

import pytest
import torch
import torch.nn.functional as F

from relakit.ops.native.connection import connected_extension, why_not_connected
from relakit.ops.native.extension import BACKEND_VARIABLE
from relakit.train import loss as loss_module
from relakit.train.loss import (
    FEWEST_ROWS,
    LossMean,
    SmoothingOver,
    plain_losses,
    rows_at_a_time,
    smoothed_loss,
)

PADDING = 0

needs_extension = pytest.mark.skipif(
    bool(why_not_connected()), reason="the C++ extension is not there"
)


def inputs(rows: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(rows)
    states = torch.randn(1, rows, 12, dtype=dtype, requires_grad=True)
    weight = torch.randn(37, 12, dtype=dtype, requires_grad=True)
    targets = torch.randint(0, 37, (1, rows))
    targets[0, 0] = 5  # at least one that counts
    return states, weight, targets


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, FEWEST_ROWS - 1, FEWEST_ROWS, 2 * FEWEST_ROWS + 3])
def test_equals_cross_entropy(rows: int, smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "CHUNK_BYTES", 0)  # as few rows at a time as possible
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


def test_chunks_are_small_whatever_the_vocabulary() -> None:
    assert rows_at_a_time(torch.empty(8000, 1, dtype=torch.bfloat16)) == 524
    assert rows_at_a_time(torch.empty(8000, 1)) == 262
    assert rows_at_a_time(torch.empty(1_000_000, 1)) == FEWEST_ROWS


def test_nothing_to_predict() -> None:
    states, weight, targets = inputs(3)
    loss = smoothed_loss(states, weight, targets * 0, smoothing=0.1, padding=PADDING)
    assert (loss.smoothed.item(), loss.tokens) == (0.0, 0)
    gradients = torch.autograd.grad(loss.smoothed, (states, weight))
    assert not any(gradient.any() for gradient in gradients)


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


def test_without_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not computed then, though the weights could have some."""
    states, weight, targets = inputs(20)
    wanted: list[bool] = []
    original = loss_module._losses

    def watched(*arguments, wants_gradient):  # type: ignore[no-untyped-def]
        wanted.append(wants_gradient)
        return original(*arguments, wants_gradient=wants_gradient)

    monkeypatch.setattr(loss_module, "_losses", watched)
    with torch.inference_mode():
        loss = smoothed_loss(states, weight, targets, smoothing=0.0, padding=PADDING)
    assert not loss.smoothed.requires_grad
    again = smoothed_loss(states, weight, targets, smoothing=0.0, padding=PADDING)
    assert again.smoothed.item() == loss.smoothed.item()
    assert wanted == [False, True]


def test_second_derivatives_are_refused() -> None:
    states, weight, targets = inputs(5)
    loss = smoothed_loss(states, weight, targets, smoothing=0.1, padding=PADDING)
    (gradient,) = torch.autograd.grad(loss.smoothed**2, states, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_any_layout_and_default_dtype() -> None:
    states, weight, _ = inputs(6, torch.float32)
    targets = torch.arange(1, 7).view(3, 2).t()
    assert not targets.is_contiguous()
    states = states.reshape(2, 3, 12)
    torch.set_default_dtype(torch.float64)
    try:
        found = smoothed_loss(
            states, weight, targets, smoothing=0.1, padding=PADDING, mean_over="sentences"
        )
    finally:
        torch.set_default_dtype(torch.float32)
    expected = smoothed_loss(
        states, weight, targets.contiguous(), smoothing=0.1, padding=PADDING, mean_over="sentences"
    )
    assert found.smoothed.item() == pytest.approx(expected.smoothed.item(), rel=1e-6)


def rows_of_logits(
    rows: int, vocabulary: int, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(vocabulary)
    logits = (3 * torch.randn(rows, vocabulary)).to(dtype)
    return logits, torch.randint(0, vocabulary, (rows,)), torch.rand(rows)


@needs_extension
class TestKernels:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
    @pytest.mark.parametrize("vocabulary", [1, 2, 7, 16, 63, 111, 1000])
    @pytest.mark.parametrize("is_shared", [False, True])
    def test_equal_the_formula(
        self, isa: str, vocabulary: int, dtype: torch.dtype, is_shared: bool
    ) -> None:
        logits, targets, shares = rows_of_logits(19, vocabulary, dtype)
        given = shares if is_shared else None
        exact, exact_gradient = plain_losses(logits.float().clone(), targets, 0.1, given)
        kept = logits.clone()
        found = connected_extension().smoothed_losses(logits, targets, 0.1, given, True)
        torch.testing.assert_close(found, exact, rtol=1e-5, atol=1e-5)
        rounding = 2e-7 if dtype == torch.float32 else 4e-3
        torch.testing.assert_close(
            logits.float(), exact_gradient, rtol=rounding, atol=1e-6, check_dtype=False
        )
        found = connected_extension().smoothed_losses(kept, targets, 0.1, given, False)
        torch.testing.assert_close(found, exact, rtol=1e-5, atol=1e-5)
        again, _, _ = rows_of_logits(19, vocabulary, dtype)
        assert torch.equal(kept, again), "without gradients the logits stay"

    @pytest.mark.parametrize("offset", [0, 1024, -1e5])
    def test_equal_cross_entropy_far_from_zero(self, isa: str, offset: float) -> None:
        logits, targets, _ = rows_of_logits(5, 1000, torch.float32)
        logits = (logits * 64).round() / 64 + offset  # exact in float32
        expected = [
            F.cross_entropy(logits.double(), targets, reduction="none", label_smoothing=smoothing)
            for smoothing in (0.1, 0.0)
        ]
        found = connected_extension().smoothed_losses(logits, targets, 0.1, None, False)
        torch.testing.assert_close(found.double(), torch.stack(expected, 1), rtol=1e-6, atol=1e-6)

    def test_large_logits_and_nan(self, isa: str) -> None:
        logits = torch.zeros(3, 40)
        logits[0, 3], logits[1, 5] = 1e30, -1e30
        logits[2, 39] = torch.nan
        found = connected_extension().smoothed_losses(
            logits, torch.tensor([3, 4, 0]), 0.0, None, True
        )
        assert found[0].tolist() == [0.0, 0.0]
        assert found[1].tolist() == pytest.approx([math.log(39)] * 2, rel=1e-5)
        assert found[2].isnan().all()
        assert logits[0].abs().max() < 1e-30
        assert logits[2].isnan().any()

    def test_targets_are_checked(self, isa: str) -> None:
        for target in (-1, 7):
            with pytest.raises(ValueError, match=f"target {target} is not in a vocabulary of 7"):
                connected_extension().smoothed_losses(
                    torch.zeros(1, 7), torch.tensor([target]), 0.0, None, True
                )

    def test_what_they_do_not_serve(self, monkeypatch: pytest.MonkeyPatch) -> None:
        losses = connected_extension().smoothed_losses
        targets = torch.tensor([1, 2])
        assert losses(torch.zeros(2, 5, dtype=torch.float64), targets, 0.1, None, True) is None
        assert losses(torch.zeros(5, 2).t(), targets, 0.1, None, True) is None
        assert losses(torch.zeros(2, 5), targets.int(), 0.1, None, True) is None
        assert losses(torch.zeros(2, 5), targets, 0.1, torch.ones(3), True) is None
        assert losses(torch.zeros(2, 5), targets, 0.1, None, True) is not None
        monkeypatch.setenv(BACKEND_VARIABLE, "reference")
        assert losses(torch.zeros(2, 5), targets, 0.1, None, True) is None

    def test_training_uses_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """And the loss is the same without."""
        calls: list[str] = []
        plain = loss_module.plain_losses

        def watch(*arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            calls.append(backend)
            return plain(*arguments)

        monkeypatch.setattr(loss_module, "plain_losses", watch)
        monkeypatch.setattr(loss_module, "CHUNK_BYTES", 0)
        states, weight, targets = inputs(2 * FEWEST_ROWS, torch.float32)
        found = []
        for backend in ("", "reference"):
            monkeypatch.setenv(BACKEND_VARIABLE, backend)
            loss = smoothed_loss(states, weight, targets, smoothing=0.1, padding=PADDING)
            found.append([loss.smoothed, *torch.autograd.grad(loss.smoothed, (states, weight))])
        assert calls == ["reference"] * 2, "one call for each chunk, and none with the kernels"
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)

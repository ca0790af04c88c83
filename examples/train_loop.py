"""The training loop of the examples."""

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn


def train(
    model: nn.Module,
    next_loss: Callable[[], Tensor],
    *,
    steps: int,
    learning_rate: float,
    is_constant: bool = False,
    after_step: Callable[[int, float], None] = lambda step, loss: None,
) -> None:
    """AdamW with warm-up, clipped gradients, and a learning rate that falls to 0 or stays constant.

    Args:
        model: what to train.
        next_loss: the loss on the next batch.
        steps: how many updates.
        learning_rate: the highest learning rate.
        is_constant: the learning rate stays at its highest after 10 steps, so that you can stop
            anywhere; otherwise it rises for 30% of the steps and falls for the rest.
        after_step: called with the number of updates so far, and the loss before the last one.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.98))
    schedule: torch.optim.lr_scheduler.LRScheduler
    if is_constant:
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=10)
    else:
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=steps)
    model.train()
    for step in range(1, steps + 1):
        loss = next_loss()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        after_step(step, loss.item())


def print_progress(steps: int) -> Callable[[int, float], None]:
    """For `train`: prints about ten lines, with the loss and the remaining time."""
    start = time.perf_counter()

    def after_step(step: int, loss: float) -> None:
        if step % max(1, steps // 10) == 0 or step == 1:
            left = (time.perf_counter() - start) / step * (steps - step)
            print(f"step {step:5} of {steps}  loss {loss:.3f}  {left:.0f} s left", flush=True)

    return after_step

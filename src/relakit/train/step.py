"""One update: loss and gradients of its batches, and a step of Adam."""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from relakit.data.batches import Batch, collate, collate_anew
from relakit.data.bpe_dropout import SplitAnew
from relakit.data.prepared_reader import EncodedSplit
from relakit.data.tokenizer import PAD
from relakit.model import Transformer
from relakit.ops.torch_private import keep_out_of_exchange
from relakit.train.distributed import World
from relakit.train.loss import smoothed_loss
from relakit.train.plan import Update, enough_batches
from relakit.train.recipe import TrainingSection
from relakit.train.schedule import learning_rate

SEED_PRIME = 1_000_003


class BatchLoss(nn.Module):
    """The model together with its loss: what data parallelism wraps."""

    def __init__(self, model: Transformer, settings: TrainingSection) -> None:
        super().__init__()
        self.model = model
        self.settings = settings  # nn.Module already has `training`

    def forward(self, source: Tensor, target: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        """The smoothed loss and the negative log-likelihood: sums, as in `Loss`."""
        loss = smoothed_loss(
            self.model(source, target),
            self.model.embedding.weight,
            expected,
            smoothing=self.settings.label_smoothing,
            padding=PAD,
            smoothing_over=self.settings.smoothing_over,
            mean_over=self.settings.loss_mean,
        )
        return loss.smoothed, loss.negative_log_likelihood


class UpdateLoss(NamedTuple):
    """Means over an update."""

    smoothed: float
    """Over target tokens, or over sentences if the recipe says so."""
    negative_log_likelihood: float
    """Over target tokens."""
    target_tokens: int
    """Actually computed, in all processes: BPE-dropout makes more of them than were planned."""


class GradientStep:
    """Leaves the gradients of an update in the model's parameters.

    The random numbers of a batch follow from the seed, the update and the batch's place in it, not
    from what was computed before or by which process: a resumed run draws the same, and so do two
    processes, unless they must split batches to have one each.
    """

    def __init__(
        self,
        model: Transformer,
        split: EncodedSplit,
        world: World,
        training: TrainingSection,
        *,
        precision: torch.dtype,
        split_anew: SplitAnew | None = None,
    ) -> None:
        self._loss: nn.Module = BatchLoss(model, training)
        if world.size > 1:
            # The only buffer. Each process grows its own as needed, so their sizes may differ.
            keep_out_of_exchange(self._loss, ["model.embedding.positions"])
            self._loss = DistributedDataParallel(self._loss, gradient_as_bucket_view=True)
        self._split = split
        self._world = world
        self._training = training
        self._precision = precision
        self._split_anew = split_anew

    def __call__(self, update: Update) -> UpdateLoss:
        """Compute loss and gradients; each process takes its share of the batches."""
        world = self._world
        parts = enough_batches(update.batches, world.size)
        mine = list(range(world.rank, len(parts), world.size))
        # All processes take part in the exchange of gradients: one without a batch of its own
        # computes the first, with weight 0.
        idle = not mine
        if idle:
            mine = [0]
        batches = [
            (place, batch) for place in mine for batch in self._collate(parts[place], update, place)
        ]
        tokens = update.target_tokens
        if self._split_anew is not None:
            own = 0 if idle else sum(batch.target_tokens for _, batch in batches)
            tokens = round(world.sum([float(own)])[0])
        # The loss is a mean over all tokens or sentences of the update.
        is_by_sentence = self._training.loss_mean == "sentences"
        count = sum(map(len, update.batches)) if is_by_sentence else tokens
        weight = 0.0 if idle else world.size / count
        sums = [0.0, 0.0]
        seeded = None
        for number, (place, batch) in enumerate(batches, start=1):
            if place != seeded:
                self._seed(update, place)
                seeded = place
            with self._without_exchange(is_last=number == len(batches)):
                losses = self._batch(batch, weight)
            if not idle:
                sums = [total + loss for total, loss in zip(sums, losses, strict=True)]
        smoothed, likelihood = world.sum(sums)
        return UpdateLoss(smoothed / count, likelihood / tokens, tokens)

    def _collate(self, indices: npt.NDArray[np.int64], update: Update, place: int) -> list[Batch]:
        """A batch of an update; with BPE-dropout it may become several."""
        if self._split_anew is None:
            return [collate(self._split, indices)]
        return collate_anew(
            self._split,
            indices,
            self._split_anew,
            seed=f"{self._training.seed} {update.number} {place}",
            batch_tokens=self._training.batch_tokens,
        )

    def _seed(self, update: Update, place: int) -> None:
        seed = (self._training.seed * SEED_PRIME + update.number) * SEED_PRIME + place
        torch.manual_seed(seed % 2**63)

    def _batch(self, batch: Batch, weight: float) -> tuple[float, float]:
        device = self._world.device
        tensors = (
            torch.from_numpy(array).to(device, non_blocking=True)
            for array in (batch.source, batch.target_in, batch.target_out)
        )
        with autocast(device, self._precision):
            smoothed, likelihood = self._loss(*tensors)
        # Data parallelism takes the mean over processes; we want the sum.
        (smoothed * weight).backward()
        return smoothed.item(), likelihood.item()

    def _without_exchange(self, is_last: bool) -> AbstractContextManager[None]:
        if isinstance(self._loss, DistributedDataParallel) and not is_last:
            return self._loss.no_sync()
        return nullcontext()


def make_optimizer(model: Transformer, training: TrainingSection) -> torch.optim.Adam:
    """Adam with the recipe's settings."""
    return torch.optim.Adam(
        model.parameters(), betas=training.adam_betas, eps=training.adam_eps, fused=True
    )


class WeightStep(NamedTuple):
    """What an update did."""

    loss: UpdateLoss
    gradient_norm: float
    learning_rate: float

    @property
    def is_finite(self) -> bool:
        """Whether the weights were changed; only finite losses and gradients may change them."""
        return math.isfinite(self.loss.smoothed) and math.isfinite(self.gradient_norm)


def update_weights(
    update: Update,
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    gradients: GradientStep,
    training: TrainingSection,
) -> WeightStep:
    """One whole update: gradients, their norm, the learning rate, the optimizer's step."""
    optimizer.zero_grad(set_to_none=True)
    loss = gradients(update)
    norm = _measure_and_clip(model, training.clip_norm)
    rate = learning_rate(
        update.number,
        dim=model.config.dim,
        warmup=training.warmup,
        factor=training.learning_rate_factor,
        cooldown=training.cooldown,
        updates=training.updates,
    )
    done = WeightStep(loss, float(norm), rate)
    if done.is_finite:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    return done


def _measure_and_clip(model: nn.Module, most: float) -> Tensor:
    """The norm of all gradients, which is then at most ``most``, unless that is 0."""
    if most:
        return torch.nn.utils.clip_grad_norm_(model.parameters(), most, foreach=True)
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    return torch.nn.utils.get_total_norm(gradients, foreach=True)


def autocast(device: torch.device, precision: torch.dtype) -> AbstractContextManager[object]:
    """Compute matrix products in this precision."""
    if precision == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype=precision)

"""What a run would take: its settings, size, memory and time. Writes nothing."""

import time
from dataclasses import dataclass
from itertools import islice
from typing import Final

import torch

from relakit.amounts import format_bytes, number_with_noun
from relakit.decode.translator import choose_dtype
from relakit.limits import checked_threads
from relakit.model import Transformer
from relakit.model.memory import ADAM_COPIES, FLOAT_BYTES, training_bytes
from relakit.threads import set_threads
from relakit.train.corpus import split_anew
from relakit.train.corpus_sample import CorpusSample, sample_corpus
from relakit.train.distributed import World, join_world
from relakit.train.feasibility import check_batches, check_model, warn_of_short_run
from relakit.train.plan import Update, first_epoch, total_updates
from relakit.train.preflight import settled_settings
from relakit.train.recipe import Recipe
from relakit.train.recipe_file import write_recipe
from relakit.train.step import GradientStep, make_optimizer

TIMED_BATCHES: Final = 3
"""How many batches are timed, after one that is not: the first call is always slow."""


@dataclass(frozen=True)
class Trial:
    """A few batches, computed and timed."""

    batches: int
    seconds_per_token: float
    """Loss and gradients, per target token"""
    seconds_per_step: float
    """One step of Adam"""


@dataclass(frozen=True)
class DryRun:
    """What a run would take."""

    recipe: Recipe
    corpus: CorpusSample
    batches_per_epoch: int
    updates_per_epoch: int
    target_tokens_per_epoch: int
    """With the end-of-sentence token of each sentence"""
    updates: int | None
    """In the whole run; None if only time ends it"""
    model: Transformer
    parameters: int
    device: torch.device
    trial: Trial

    @property
    def seconds_per_epoch(self) -> float:
        """Training time per epoch, without validations and checkpoints."""
        trial = self.trial
        computing = self.target_tokens_per_epoch * trial.seconds_per_token
        return computing + self.updates_per_epoch * trial.seconds_per_step

    @property
    def seconds(self) -> float:
        """Training time until the recipe's end, if nothing ends the run earlier."""
        minutes = self.recipe.training.minutes
        limits = [60 * minutes] if minutes is not None else []
        if self.updates is not None:
            limits.append(self.updates * self.seconds_per_epoch / self.updates_per_epoch)
        return min(limits)

    def describe(self) -> str:
        """The recipe with every setting, as TOML that can be trained, and the rest as comments."""
        comments = "\n".join(f"# {line}".rstrip() for line in self._lines())
        return f"{comments}\n\n{write_recipe(self.recipe)}"

    def _lines(self) -> list[str]:
        training, config, counts = self.recipe.training, self.model.config, self.corpus.split.counts
        scale, about = self.corpus.scale, "" if self.corpus.is_whole else "about "
        weights = FLOAT_BYTES * self.parameters
        moments = ADAM_COPIES * weights
        activations = _activations(self)
        updates = "until its time is over" if self.updates is None else f"{self.updates:,} in all"
        sample = "" if self.corpus.is_whole else f" (estimated from {counts.read:,} of them)"
        return [
            f"corpus       {self.corpus.pairs:,} pairs{sample}",
            f"             {about}{counts.kept * scale:,.0f} kept, {about}"
            f"{counts.source_tokens * scale:,.0f} source and {counts.target_tokens * scale:,.0f} "
            "target tokens",
            f"epoch        {about}{self.batches_per_epoch:,} batches in {about}"
            f"{self.updates_per_epoch:,} updates",
            f"updates      {updates}",
            f"model        {self.parameters:,} parameters: {config.encoder_layers} + "
            f"{config.decoder_layers} layers, dim {config.dim:,}, feed-forward "
            f"{config.feed_forward:,}, {config.vocabulary:,} tokens",
            f"memory       weights {format_bytes(weights)}, gradients {format_bytes(weights)}, "
            f"Adam {format_bytes(moments)}, a batch at least {format_bytes(activations)}: "
            f"{format_bytes(2 * weights + moments + activations)} and more",
            f"disk         {training.keep} checkpoints and one in the making of "
            f"{format_bytes(weights + moments)}, a model of {format_bytes(weights)}: "
            f"{format_bytes((training.keep + 1) * (weights + moments) + weights)}, and the corpus",
            f"time         {_duration(self.seconds_per_epoch)} for an epoch, "
            f"{_duration(self.seconds)} in all, without validations and checkpoints",
            f"             ({self.trial.batches} batches and steps of Adam were timed, on "
            f"{self.device} with {number_with_noun(torch.get_num_threads(), 'thread')}; other load "
            "changes it)",
        ]


def dry_run(recipe: Recipe) -> DryRun:
    """Find out what a run would take, with a short trial on its own data.

    Raises:
        ValueError: the recipe could not be trained; says why, as `run_training` would.
        OSError: the data cannot be read.
    """
    recipe = settled_settings(recipe)
    training = recipe.training
    set_threads(checked_threads("training.threads", training.threads, least=0))
    with join_world(training.device) as world:
        if world.size > 1:
            raise ValueError("a dry run needs no torchrun: it looks at one process")
        check_model(recipe, world.device)
        corpus = sample_corpus(recipe)
        check_model(recipe, world.device, *corpus.vocabularies)
        check_batches(recipe, corpus.split, world.device, *corpus.vocabularies)
        torch.manual_seed(training.seed)
        model = Transformer(recipe.model.config(*corpus.vocabularies)).to(world.device)
        epoch = first_epoch(corpus.split, training)
        scale = corpus.scale
        per_epoch = max(1, round(scale * len(epoch)))
        updates = total_updates(training, per_epoch)
        warn_of_short_run(training, updates)
        return DryRun(
            recipe=recipe,
            corpus=corpus,
            batches_per_epoch=max(1, round(scale * sum(len(u.batches) for u in epoch))),
            updates_per_epoch=per_epoch,
            target_tokens_per_epoch=round(scale * sum(u.target_tokens for u in epoch)),
            updates=updates,
            model=model,
            parameters=sum(p.numel() for p in model.parameters()),
            device=world.device,
            trial=_try(model, corpus, epoch, world, recipe),
        )


def _try(
    model: Transformer,
    corpus: CorpusSample,
    epoch: list[Update],
    world: World,
    recipe: Recipe,
) -> Trial:
    """Time a few single batches, as an update of many batches may take minutes."""
    training, split = recipe.training, corpus.split
    gradients = GradientStep(
        model.train(),
        split,
        world,
        training,
        precision=choose_dtype(training.precision, world.device),
        split_anew=split_anew(recipe.data, corpus.tokenizers),
    )
    optimizer = make_optimizer(model, training)
    batches = list(islice((batch for update in epoch for batch in update.batches),
                          1 + TIMED_BATCHES))  # fmt: skip
    computing = stepping = 0.0
    tokens = 0
    for number, batch in enumerate([batches[0], *(batches[1:] or batches)]):
        size = int(split.target_lengths[batch].sum()) + len(batch)
        start = time.perf_counter()
        gradients(Update(1, 0, (batch,), size, False))
        _wait_for(world.device)
        middle = time.perf_counter()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        _wait_for(world.device)
        if number:
            tokens += size
            computing += middle - start
            stepping += time.perf_counter() - middle
    timed = max(1, len(batches) - 1)
    return Trial(timed, computing / tokens, stepping / timed)


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _activations(run: DryRun) -> int:
    """How much memory a batch adds to training, at least."""
    config, tokens = run.model.config, run.recipe.training.batch_tokens
    return training_bytes(config, tokens) - training_bytes(config)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86400:.1f} days"

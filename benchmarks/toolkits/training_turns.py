"""Training speed: target tokens per second of whole updates, with the same batches for all."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors.numpy import save_file

from relakit.bench.rounds import Contender, ContenderError, Field, Turn
from relakit.data.batches import collate
from relakit.data.prepared_reader import EncodedSplit
from relakit.decode.translator import choose_dtype
from relakit.model import ModelConfig, Transformer
from relakit.train.distributed import World
from relakit.train.plan import Update, plan_updates
from relakit.train.recipe import TrainingSection
from relakit.train.step import GradientStep, make_optimizer, update_weights
from toolkits.models import (
    bench_corpus,
    check_vocabulary,
    describe_model,
    model_configs,
    peer_size,
)
from toolkits.peers import OWN_BATCHES, PeerPlace, Peers
from toolkits.settings import System, TrainingSettings
from workers import Worker, number_of

CASE: Final = "training"
TOKENS_PER_PAIR: Final = 8
"""Fewer tokens than a generated pair has, so that there are enough pairs."""


def bucketed_updates(split: EncodedSplit, settings: TrainingSettings) -> list[Update]:
    """The updates of a relakit run, one batch each: bucketed by length and shuffled."""
    plan = plan_updates(
        split, batch_tokens=settings.batch_tokens, update_tokens=1, seed=settings.seed
    )
    updates: list[Update] = []
    for update in islice(plan, settings.steps * settings.rounds):
        updates.append(update)
        if update.is_last_of_epoch:  # the batches of a small corpus are repeated
            break
    return updates


def shuffled_updates(split: EncodedSplit, settings: TrainingSettings) -> list[Update]:
    """Batches of sentences of any length, within the same budget: how JoeyNMT batches by tokens."""
    order = np.random.default_rng(settings.seed).permutation(len(split))
    updates: list[Update] = []
    start = 0
    while start < len(order) and len(updates) < settings.steps * settings.rounds:
        size, widest = 0, 0
        while start + size < len(order):
            index = int(order[start + size])
            width = max(int(split.source_lengths[index]), int(split.target_lengths[index])) + 1
            if size and max(widest, width) * (size + 1) > settings.batch_tokens:
                break
            size, widest = size + 1, max(widest, width)
        batch = order[start : start + size]
        tokens = int(split.target_lengths[batch].sum()) + size
        updates.append(Update(len(updates) + 1, 0, (batch,), tokens, False))
        start += size
    return updates


class TrainingWork:
    """The updates that a contender makes, a few in each round."""

    def __init__(self, split: EncodedSplit, steps: int, updates: list[Update]) -> None:
        self.split = split
        self.steps = steps
        self.updates = updates

    def of_round(self, number: int) -> list[Update]:
        """The updates of a round, counted from 0."""
        first = number * self.steps
        return [self.updates[i % len(self.updates)] for i in range(first, first + self.steps)]

    def write(self, path: Path) -> None:
        """Write all batches in the form that the peers read."""
        arrays = {}
        for number, update in enumerate(self.updates):
            batch = collate(self.split, update.batches[0])
            arrays[f"source.{number}"] = batch.source
            arrays[f"target.{number}"] = batch.target_out
        save_file(arrays, path)


class OwnTraining:
    """relakit: the gradients and the optimizer of `relakit train`."""

    def __init__(
        self,
        model: Transformer,
        optimizer: torch.optim.Adam,
        gradients: GradientStep,
        training: TrainingSection,
        work: TrainingWork,
    ) -> None:
        self._model = model
        self._optimizer = optimizer
        self._gradients = gradients
        self._training = training
        self._work = work

    def warm_up(self, case: str) -> None:
        self.run(case, 0)

    def run(self, case: str, number: int) -> Turn:
        updates = self._work.of_round(number)
        start = time.perf_counter()
        for update in updates:
            done = update_weights(
                update, self._model, self._optimizer, self._gradients, self._training
            )
            if not done.is_finite:
                raise ContenderError(f"its loss is not finite: {done.loss.smoothed}")
        return _turn(time.perf_counter() - start, updates)


class PeerTraining:
    """A peer that has the same batches."""

    def __init__(self, peer: Worker, work: TrainingWork) -> None:
        self._peer = peer
        self._work = work

    def warm_up(self, case: str) -> None:
        self.run(case, 0)

    def run(self, case: str, number: int) -> Turn:
        updates, steps = self._work.of_round(number), self._work.steps
        first = number * steps % len(self._work.updates)
        answer = self._peer.ask("train-steps", first=first, count=steps)
        turn = _turn(number_of(answer, "seconds"), updates)
        trained = number_of(answer, "target_tokens")
        expected = turn.work["target_tokens"]
        if trained != expected:
            raise ContenderError(f"trained on {trained:g} tokens, not on {expected}")
        return turn


def _turn(seconds: float, updates: Sequence[Update]) -> Turn:
    work = {
        "target_tokens": sum(update.target_tokens for update in updates),
        "sentences": sum(len(batch) for update in updates for batch in update.batches),
    }
    return Turn(seconds, work)


@contextmanager
def training_field(settings: TrainingSettings, place: PeerPlace, folder: Path) -> Iterator[Field]:
    """All contenders, ready to train; peers end with the block. ``folder`` is for scratch files."""
    configs = model_configs(settings, dropout=settings.dropout)
    corpus = bench_corpus(settings, folder, train=_pairs(settings), test=1)
    check_vocabulary(corpus, settings)
    split = corpus.split("train")
    work = TrainingWork(split, settings.steps, bucketed_updates(split, settings))
    shuffled = TrainingWork(split, settings.steps, shuffled_updates(split, settings))
    batches = {False: folder / "batches.safetensors", True: folder / "shuffled.safetensors"}
    work.write(batches[False])
    shuffled.write(batches[True])
    field = Field()
    with Peers(place, threads=settings.threads, folder=folder) as peers:
        for name, config in configs.items():
            for system, training in _own_trainings(name, config, settings, work):
                field.contenders[system.label] = training
                field.about[system.label] = describe_model(config)
        for system in settings.systems():
            if not system.is_ours:
                size = peer_size(next(iter(configs.values())))
                is_own = system.system.endswith(OWN_BATCHES)
                request = {"size": size, "batches": str(batches[is_own])}
                its_work = shuffled if is_own else work
                field.enter(system.label, _starter(system, peers, settings, its_work, request))
        yield field


def _own_trainings(
    attention: str, config: ModelConfig, settings: TrainingSettings, work: TrainingWork
) -> Iterator[tuple[System, Contender]]:
    """One model for all precisions: its weights are float32 in each of them."""
    training = TrainingSection(
        updates=1, label_smoothing=settings.label_smoothing, seed=settings.seed
    )
    torch.manual_seed(settings.seed)
    model = Transformer(config).train()
    optimizer = make_optimizer(model, training)
    world = World()
    for system in settings.own_systems():
        if system.attention != attention:
            continue
        gradients = GradientStep(
            model,
            work.split,
            world,
            training,
            precision=choose_dtype(system.precision, world.device),  # type: ignore[arg-type]
        )
        yield system, OwnTraining(model, optimizer, gradients, training, work)


def _starter(
    system: System,
    peers: Peers,
    settings: TrainingSettings,
    work: TrainingWork,
    request: dict[str, Any],
) -> Callable[[], tuple[Contender, str]]:
    def start() -> tuple[Contender, str]:
        peer = peers.start(system.system.removesuffix(OWN_BATCHES))
        answer = peer.ask(
            "setup-train",
            **request,
            threads=settings.threads,
            precision=system.precision,
            dropout=settings.dropout,
            label_smoothing=settings.label_smoothing,
        )
        return PeerTraining(peer, work), str(answer.get("about", ""))

    return start


def _pairs(settings: TrainingSettings) -> int:
    tokens = settings.steps * settings.rounds * settings.batch_tokens
    return min(200_000, max(1000, tokens // TOKENS_PER_PAIR))

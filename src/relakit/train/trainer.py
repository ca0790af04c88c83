"""The training loop."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from relakit.data.prepared_reader import PreparedCorpus
from relakit.decode.translator import choose_dtype
from relakit.model import Transformer, load_model
from relakit.train.checkpoint import (
    Checkpoint,
    RunState,
    find_checkpoints,
    remove_interrupted,
    restore,
    save_checkpoint,
)
from relakit.train.corpus import split_anew
from relakit.train.distributed import World
from relakit.train.interrupts import caught_interrupts
from relakit.train.plan import Update, plan_updates
from relakit.train.recipe import Recipe
from relakit.train.result import Scores, Verdict
from relakit.train.run_folder import CHECKPOINTS
from relakit.train.run_log import RunLog, UpdateEntry, ValidationEntry
from relakit.train.step import GradientStep, WeightStep, make_optimizer, update_weights
from relakit.train.validation import frequency_loss, split_scores


@dataclass(frozen=True)
class Ending:
    """How the loop ended, and why."""

    verdict: Verdict
    reason: str
    signal: int | None = None


class Trainer:
    """Trains a model on a prepared corpus, from the start or from its last checkpoint.

    All state is in the model, the optimizer and `RunState`; batches and random numbers follow from
    the seed and the number of the update.
    """

    def __init__(
        self,
        recipe: Recipe,
        corpus: PreparedCorpus,
        folder: Path,
        world: World,
        log: RunLog,
    ) -> None:
        self.recipe = recipe
        self.corpus = corpus
        self.folder = folder
        self.world = world
        self.log = log
        self.state = RunState()
        torch.manual_seed(recipe.training.seed)
        config = recipe.model.config(*corpus.tokenizers.sizes)
        self.model = Transformer(config).to(world.device)
        self.precision = choose_dtype(recipe.training.precision, world.device)
        self.optimizer = make_optimizer(self.model, recipe.training)
        self._train_split = corpus.split("train")
        self._split_anew = split_anew(recipe.data, corpus.tokenizers)
        self._fingerprint = corpus.fingerprint
        self.state.corpus = self._fingerprint

    @property
    def checkpoints(self) -> Path:
        """The folder that holds all checkpoints."""
        return self.folder / CHECKPOINTS

    def resume(self) -> Checkpoint | None:
        """Go back to the newest checkpoint, if there is one."""
        found = find_checkpoints(self.checkpoints, interrupted=True)
        if not found:
            self.log.resume(-1)  # a run that starts from a model logs update 0 again
            return None
        try:  # before the weights: with another vocabulary they would look damaged
            trained_on = found[-1].state().corpus
        except (OSError, ValueError):
            trained_on = self._fingerprint  # it is damaged, and `restore` says so
        if trained_on != self._fingerprint:
            raise ValueError(
                f"{self.corpus.folder} is not the corpus that {found[-1].folder} was trained on; "
                "a resumed run keeps the corpus it was started with"
            )
        self.state = restore(found[-1], self.model, self.optimizer)
        if self.state.update < self.recipe.training.give_up_after:
            self.state.has_not_learnt = None  # it will be judged again, later than before
        self.log.resume(self.state.update)
        return found[-1]

    def start(self) -> None:
        """Begin at update 0; a run that starts from a model takes its weights, and is validated."""
        start = self.recipe.model.start_from
        if start is None:
            return
        model, _ = load_model(start, device=self.world.device)
        self.model.load_state_dict(model.state_dict())
        if "valid" in self.corpus.splits:
            self._validate(0, training_loss=None)

    def run(self) -> Ending:
        """Train until the recipe's end, a failure or a signal."""
        ending = self._ending()
        if ending is not None:
            if ending.verdict == "finished":
                self._keep_interrupted()
            return ending
        self.model.train()
        step = GradientStep(
            self.model,
            self._train_split,
            self.world,
            self.recipe.training,
            precision=self.precision,
            split_anew=self._split_anew,
        )
        with caught_interrupts() as interrupts:
            for update in self._updates():
                ending = self._update(update, step)
                if ending is not None:
                    return ending  # the weights are those of the previous update
                stop = self.world.sum([float(interrupts.signal is not None)])[0] > 0
                self._validate_if_due(update)
                ending = self._ending()
                self._checkpoint_if_due(is_end=ending is not None, is_stopped=stop)
                if ending is not None:
                    return ending
                if stop:
                    reason = f"asked to stop after update {update.number:,}"
                    return Ending("stopped", reason, interrupts.signal)
        raise AssertionError("there is always another update")

    def _updates(self) -> Iterator[Update]:
        training, state = self.recipe.training, self.state
        return plan_updates(
            self._train_split,
            batch_tokens=training.batch_tokens,
            update_tokens=training.update_tokens,
            seed=training.seed,
            after=state.update,
            epoch=state.epoch,
            before_epoch=state.updates_before_epoch,
        )

    def _update(self, update: Update, step: GradientStep) -> Ending | None:
        """One update of the weights, unless its loss or gradient is not finite."""
        state = self.state
        start = time.perf_counter()
        done = update_weights(update, self.model, self.optimizer, step, self.recipe.training)
        if not done.is_finite:
            return _not_finite(update, done)
        loss = done.loss
        seconds = time.perf_counter() - start
        if update.epoch != state.epoch:
            state.updates_before_epoch = state.update
            state.epoch = update.epoch
        state.update = update.number
        state.target_tokens += loss.target_tokens
        state.seconds += seconds
        state.epochs_done = update.epoch + update.is_last_of_epoch
        state.recent.append(loss.smoothed)
        self.log.update(
            UpdateEntry(
                update=update.number,
                epoch=update.epoch + 1,
                loss=loss.smoothed,
                negative_log_likelihood=loss.negative_log_likelihood,
                learning_rate=done.learning_rate,
                gradient_norm=done.gradient_norm,
                target_tokens=loss.target_tokens,
                seconds=seconds,
            )
        )
        return None

    def _ending(self) -> Ending | None:
        """How the run ends, if it is at its end; by `RunState` alone, so a resumed run agrees."""
        training, state = self.recipe.training, self.state
        if state.has_not_learnt is not None and training.give_up_after:
            return Ending("failed", state.has_not_learnt)
        if training.epochs is not None and state.epochs_done >= training.epochs:
            return Ending("finished", f"all {training.epochs} epochs are done")
        if training.updates is not None and state.update >= training.updates:
            return Ending("finished", f"all {training.updates:,} updates are done")
        if training.minutes is not None and self._is_time_over(training.minutes):
            return Ending("finished", f"{training.minutes:g} minutes of training are over")
        patience = self.recipe.validation.patience
        if patience and state.validations_since_best >= patience:
            return Ending(
                "finished",
                f"no better validation loss than {state.best_loss:.3f} in the last "
                f"{patience} validations",
            )
        return None

    def _is_time_over(self, minutes: float) -> bool:
        """Decided by the main process's clock: all processes must agree."""
        is_over = self.world.is_main and self.state.seconds >= 60 * minutes
        return self.world.sum([float(is_over)])[0] > 0

    def _validate_if_due(self, update: Update) -> None:
        state = self.state
        if update.number % self.recipe.validation.every:
            return
        mean = sum(state.recent) / len(state.recent)
        state.recent = []
        if "valid" not in self.corpus.splits:
            return
        scores = self._validate(update.number, training_loss=mean)
        state.has_not_learnt = self._why_give_up(update, scores)

    def _validate(self, update: int, *, training_loss: float | None) -> Scores:
        validation, state = self.recipe.validation, self.state
        scores = self.scores("valid", beam=validation.beam, sentences=validation.sentences)
        self.log.validation(
            ValidationEntry(
                update=update,
                training_loss=training_loss,
                scores=scores,
            )
        )
        if state.best_loss is None or scores.loss < state.best_loss:
            state.best_loss = scores.loss
            state.validations_since_best = 0
        else:
            state.validations_since_best += 1
        return scores

    def scores(self, split: str, *, beam: int, sentences: int = 0) -> Scores:
        """Loss and BLEU of the current model, computed by the main process for all."""
        validation = self.recipe.validation
        loss, bleu, signature, outputs = 0.0, math.nan, None, None
        if self.world.is_main:
            scores = split_scores(
                self.model,
                self.corpus.tokenizers,
                self.corpus.split(split),
                precision=self.precision,
                bleu=validation.bleu,
                search=validation.search(beam),
                sentences=sentences,
            )
            loss, signature = scores.loss, scores.bleu_signature
            outputs = scores.attention_outputs
            bleu = math.nan if scores.bleu is None else scores.bleu
        loss, bleu = self.world.sum([loss, bleu if self.world.is_main else 0.0])
        return Scores(loss, None if math.isnan(bleu) else bleu, signature, outputs)

    def _why_give_up(self, update: Update, scores: Scores) -> str | None:
        limit = self.recipe.training.give_up_after
        if not limit or not limit <= update.number < limit + self.recipe.validation.every:
            return None
        baseline = frequency_loss(
            self._train_split, self.corpus.split("valid"), self.model.config.vocabulary
        )
        if scores.loss < baseline:
            return None
        return (
            f"the loss does not decrease: after {update.number:,} updates the validation loss is "
            f"{scores.loss:.3f}, no better than {baseline:.3f} for guessing by frequency"
        )

    def _keep_interrupted(self) -> None:
        """Make the last checkpoint count for the model, if only a signal asked for it.

        A resumed run ends with it if fewer updates are asked for now, so that none is left to do.
        """
        newest = find_checkpoints(self.checkpoints, interrupted=True)[-1:]
        is_interrupted = newest != find_checkpoints(self.checkpoints)[-1:]
        self.world.wait()  # no process may write before all have looked
        if is_interrupted:
            self._checkpoint_if_due(is_end=True, is_stopped=False)

    def _checkpoint_if_due(self, *, is_end: bool, is_stopped: bool) -> None:
        training, update = self.recipe.training, self.state.update
        is_due = is_end or update % training.checkpoint_every == 0
        if self.world.is_main and (is_due or is_stopped):
            save_checkpoint(
                self.checkpoints,
                self.model,
                self.optimizer,
                self.state,
                keep=training.keep,
                # A checkpoint that only a signal asked for must not change the final average.
                is_interrupted=not is_due,
            )
            if is_due:
                remove_interrupted(self.checkpoints)
        if is_due or is_stopped:
            self.world.wait()


def _not_finite(update: Update, done: WeightStep) -> Ending:
    name, value = "loss", done.loss.smoothed
    if math.isfinite(value):
        name, value = "norm of the gradient", done.gradient_norm
    reason = f"the {name} is not finite any more: {value} at update {update.number:,}"
    return Ending("failed", reason)

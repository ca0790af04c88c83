"""Train an alignment layer: logistic loss on its scores, with the translator frozen."""

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from relakit.align.alignment import link_weights, read_layer_alignment
from relakit.align.layer import AlignmentLayer
from relakit.align.layer_files import LayerScores
from relakit.align.lessons import Lesson, token_labels
from relakit.align.settings import ENOUGH_PAIRS, LAYER_SEED, MOST_EPOCHS
from relakit.align.states import StateBatch, state_batches
from relakit.analysis.aer import AlignmentScore
from relakit.analysis.pair_batches import WINDOW
from relakit.broken_model import BrokenModelError
from relakit.model import Transformer

WARM_UP: Final = 0.05
"""Share of the training in which the learning rate rises."""
LAST_RATE: Final = 0.02
"""The learning rate at the end, relative to the highest."""
VALIDATIONS: Final = 8
"""Exams in the whole training, evenly spaced."""
THRESHOLDS: Final = tuple(step / 4 for step in range(-8, 9))
"""Scores that are tried as the lowest of a link, if there are gold links to try them on."""

SCORE_DIGITS: Final = 4
"""Digits of error rates, precision and recall."""

Progress = Callable[[int, int], None]
"""Called with the number of pairs seen and the total."""


@dataclass(frozen=True, kw_only=True)
class LayerSettings:
    """How a layer is trained."""

    epochs: int | None = None
    """Passes over the pairs; None: until `ENOUGH_PAIRS` were seen, but at most `MOST_EPOCHS`"""
    minutes: float | None = None
    """Stop after at most this many; the learning rate falls accordingly"""
    seed: int = LAYER_SEED
    update_tokens: int = 1024
    """Target tokens, padding included, that an update learns from"""
    learning_rate: float = 0.002
    """The highest, for a model with 128 features; it scales with 1 / sqrt(features)"""

    def __post_init__(self) -> None:
        for name in ("epochs", "update_tokens"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ValueError(f"{name} must be at least 1, got {count}")
        for name in ("minutes", "learning_rate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} must be a number above 0, got {value}")

    def passes(self, pairs: int, enough: int = ENOUGH_PAIRS) -> int:
        """How many passes to make over this many pairs, so that enough are seen."""
        return self.epochs or min(MOST_EPOCHS, math.ceil(enough / pairs))

    def rate(self, progress: float, dim: int) -> float:
        """The learning rate after this share of the training: linear, up and then down."""
        highest = self.learning_rate * math.sqrt(128 / dim)
        if progress < WARM_UP:
            return highest * (progress + 0.01) / (WARM_UP + 0.01)
        left = (1 - progress) / (1 - WARM_UP)
        return highest * max(left, LAST_RATE)


@dataclass(frozen=True)
class Exam:
    """Lessons that are set aside for testing."""

    lessons: Sequence[Lesson]
    against: Literal["gold", "teacher"] = "teacher"
    """Where their links come from"""


@dataclass(frozen=True)
class TrainedLayer:
    """The layer that was best in its exams."""

    layer: AlignmentLayer
    scores: LayerScores
    epochs: float
    """Passes made over the pairs, including those after the best exam"""


def train_layer(
    model: Transformer,
    lessons: Sequence[Lesson],
    exam: Exam,
    settings: LayerSettings,
    progress: Progress = lambda done, total: None,
) -> TrainedLayer:
    """Train a layer for a model, which is not changed.

    Exams decide which state of the layer is kept: by the alignment error rate if there are gold
    links, else by the loss. With gold links, the lowest score of a link is chosen, too.

    Raises:
        ValueError: no pair to learn from, or to examine the layer on, has a sure link.
        BrokenModelError: the model's states are not finite.
    """
    for name, some in (("learn from", lessons), ("examine", exam.lessons)):
        if not any(len(lesson.sure) for lesson in some):
            raise ValueError(
                f"there is no link to {name} in {len(some):,} pairs: check that source and target "
                "are translations of each other, and in the model's languages"
            )
    return _Training(model, lessons, exam, settings).run(progress)


class _Training:
    """One run: the layer, its optimizer, and the best state so far."""

    def __init__(
        self,
        model: Transformer,
        lessons: Sequence[Lesson],
        exam: Exam,
        settings: LayerSettings,
    ) -> None:
        self.model = model
        self.lessons = lessons
        self.exam = exam
        self.settings = settings
        dim = model.config.dim
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.layer = AlignmentLayer(dim).to(model.embedding.weight.device)
        self.optimizer = torch.optim.Adam(self.layer.parameters(), betas=(0.9, 0.98))
        self.epochs = settings.passes(len(lessons))
        self.total = self.epochs * len(lessons)
        self.done = 0
        self.started = 0.0
        self.best: tuple[float, dict[str, Tensor], LayerScores] | None = None

    def run(self, progress: Progress) -> TrainedLayer:
        exams = 0
        self.started = time.monotonic()
        for pairs in self._updates():
            self.done += pairs
            progress(self.done, self.total)
            share = self._share_done()
            if share >= 1:
                break
            if share * VALIDATIONS >= exams + 1:
                exams = int(share * VALIDATIONS)
                self._examine()
        self._examine()
        assert self.best is not None
        _, state, scores = self.best
        self.layer.load_state_dict(state)
        if self.exam.against == "gold":
            scores = self._set_threshold(scores)
        self.layer.eval()
        return TrainedLayer(self.layer, scores, self.done / len(self.lessons))

    def _share_done(self) -> float:
        """The share of the training that is done, by pairs or by time."""
        minutes = self.settings.minutes
        by_time = 0.0 if minutes is None else (time.monotonic() - self.started) / (60 * minutes)
        return min(1.0, max(self.done / self.total, by_time))

    def _updates(self) -> Iterator[int]:
        """Make one update after the other; yields how many pairs each has learnt from."""
        random = np.random.default_rng(self.settings.seed)
        pairs = tokens = 0
        linked = 0.0
        for _ in range(self.epochs):
            order = random.permutation(len(self.lessons))
            shuffled = [self.lessons[index] for index in order]
            for states in self._states(shuffled, random):
                loss, found = _loss(self.layer(states), states, shuffled)
                loss.backward()  # type: ignore[no-untyped-call]
                pairs, linked = pairs + len(states.indices), linked + found
                tokens += states.target.size(0) * states.target.size(1)
                if tokens >= self.settings.update_tokens:
                    self._step(linked)
                    yield pairs
                    pairs, tokens, linked = 0, 0, 0.0
        if pairs:
            self._step(linked)
            yield pairs

    def _states(
        self, lessons: Sequence[Lesson], shuffle: np.random.Generator | None = None
    ) -> Iterator[StateBatch]:
        return state_batches(
            self.model,
            (lesson.tokens for lesson in lessons),
            batch_tokens=self.settings.update_tokens,
            window=WINDOW,
            shuffle=shuffle,
        )

    def _step(self, linked: float) -> None:
        # A mean over linked tokens, so that the many unlinked ones do not dilute it.
        for parameter in self.layer.parameters():
            if parameter.grad is not None:
                parameter.grad /= max(linked, 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate(self._share_done(), self.layer.dim)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _examine(self) -> None:
        """Score the layer in its current state, and keep that if it is the best so far."""
        loss, (score,) = self._exam_scores((0.0,))
        scores = _described(loss, score, self.exam)
        value = score.aer if self.exam.against == "gold" else loss
        if not math.isfinite(loss):
            raise BrokenModelError
        if self.best is None or value < self.best[0]:
            self.best = value, copy.deepcopy(self.layer.state_dict()), scores

    def _exam_scores(self, thresholds: Sequence[float]) -> tuple[float, list[AlignmentScore]]:
        """The loss, and the score of the links at each threshold."""
        lessons = self.exam.lessons
        total = linked = 0.0
        counted = [AlignmentScore(0, 0, 0, 0)] * len(thresholds)
        for states in self._states(lessons):
            with torch.no_grad():
                scores = self.layer(states)
                loss, found = _loss(scores, states, lessons)
            total, linked = total + float(loss), linked + found
            for index, matrix in zip(states.indices, scores.cpu().numpy(), strict=True):
                counted = [
                    before + _link_score(matrix - threshold, lessons[index])
                    for before, threshold in zip(counted, thresholds, strict=True)
                ]
        return total / linked, counted

    def _set_threshold(self, scores: LayerScores) -> LayerScores:
        """Set the lowest score of a link to the one that gives the best links in the exam."""
        _, by_threshold = self._exam_scores(THRESHOLDS)
        # Among equals, the one that changes least.
        best = min(range(len(THRESHOLDS)), key=lambda n: (by_threshold[n].aer, abs(THRESHOLDS[n])))
        self.layer.raise_threshold(THRESHOLDS[best])
        return _described(scores.loss, by_threshold[best], self.exam)


def _loss(scores: Tensor, states: StateBatch, lessons: Sequence[Lesson]) -> tuple[Tensor, float]:
    """The loss summed over token pairs with a known label, and how many of them are linked."""
    linked, known = token_labels(states, lessons)
    losses = F.binary_cross_entropy_with_logits(scores, linked, weight=known, reduction="sum")
    return losses, float((linked * known).sum())


def _link_score(scores: npt.NDArray[np.float32], lesson: Lesson) -> AlignmentScore:
    """Score the links that are read from a pair's scores, which include padding."""
    targets, sources = len(lesson.target_ids), len(lesson.source_ids)
    weights = link_weights(scores[:targets, :sources])
    return lesson.score(read_layer_alignment(weights, lesson.words).links)


def _described(loss: float, score: AlignmentScore, exam: Exam) -> LayerScores:
    def known(value: float) -> float | None:
        return None if math.isnan(value) else round(value, SCORE_DIGITS)

    return LayerScores(
        pairs=len(exam.lessons),
        loss=round(loss, 5),
        aer=known(score.aer),
        precision=known(score.precision),
        recall=known(score.recall),
        against=exam.against,
    )

"""Train alignment layers on parallel text, and put them into their models' directories."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from relakit.align.aligner import WINDOW, Aligner, fits_into
from relakit.align.choice import AlignmentChoice, read_choice, write_choice
from relakit.align.choosing import LoadedModel, choose
from relakit.align.layer import AlignmentLayer, save_layer
from relakit.align.layer_files import LayerTrained, Teacher
from relakit.align.lessons import Lesson, links_of_two_models, make_lessons
from relakit.align.rivals import Rival, find_rivals, why_not_kept
from relakit.align.settings import (
    HELD_OUT,
    PAIRS_TO_CHOOSE_ON,
    PAIRS_TO_KEEP_A_CHOICE,
    PAIRS_TO_TEACH,
    ROUNDS,
)
from relakit.align.train_layer import Exam, LayerSettings, TrainedLayer, train_layer
from relakit.analysis.gold import GoldAlignment
from relakit.analysis.pairs import AnalysisPair, Pairs
from relakit.broken_model import blamed_on
from relakit.decode.settings import DEVICE

LARGEST_SHARE: Final = 0.1
"""Largest share of the pairs that may be held out."""
_LEAST_MINUTES: Final = 1e-3
"""What is left of the time at the least: enough for one update of each layer."""

_Course: TypeAlias = tuple[Sequence[Lesson], Exam]
"""What a layer learns from, and what it is examined on."""
Stage = Callable[[str, int, int | None], None]
"""Called with the stage, the number of finished pairs, and the total."""


@dataclass(frozen=True, kw_only=True)
class AlignerTraining:
    """What alignment layers are trained for, and what they are trained on."""

    model: Path
    reverse: Path | None = None
    """A model of the other direction"""
    both: bool = True
    """Whether ``reverse`` gets a layer, too"""
    pairs: Pairs
    """Pairs to learn from"""
    by_links: bool = False
    """Learn from the gold links of ``pairs``, instead of the models' attention"""
    valid: Pairs | None = None
    """Pairs to examine the layers on; None: some of ``pairs`` are held out. If the valid pairs have
    gold links, these decide."""
    held_out: int = HELD_OUT
    rounds: int | None = None
    """How often layers are trained, from the second time on by those before. None: `ROUNDS`, but
    with ``by_links`` once: those links do not change."""
    files: tuple[str, ...] = ()
    """Where all pairs come from, for the record"""
    settings: LayerSettings
    max_tokens: int | None = None
    """Most tokens on a side; pairs with more are left out. None: as many as the models take"""
    device: str = DEVICE
    force: bool = False
    """Keep layers even if they are worse than what is already there"""

    @property
    def all_rounds(self) -> int:
        """How often layers are trained."""
        return self.rounds or (1 if self.by_links else ROUNDS)

    def check(self) -> None:
        """Raise ValueError if links are wanted from pairs without, or rounds make no sense."""
        if self.rounds is not None and self.rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {self.rounds}")
        if not self.by_links:
            return
        if self.all_rounds > 1:
            raise ValueError(
                "by_links learns from links that are given, and they are the same in every round: "
                f"rounds must be 1, got {self.rounds}"
            )
        if not _have_gold(self.pairs):
            raise ValueError("by_links learns from gold links, but none of the pairs has any")
        if self.valid is not None and not _have_gold(self.valid):
            raise ValueError(
                "with by_links no attention is read, so that the valid pairs need gold links to "
                "examine a layer on; give some, or no valid pairs: then some of the others are "
                "held out"
            )


def _have_gold(pairs: Pairs) -> bool:
    return any(pair.gold is not None for pair in pairs)


def _have_links(course: _Course) -> bool:
    """Whether there is something to learn, and to be examined on."""
    lessons, exam = course
    return all(any(len(lesson.sure) for lesson in some) for some in (lessons, exam.lessons))


@dataclass(frozen=True)
class LayerResult:
    """A layer that was trained for the model in a directory."""

    folder: Path
    trained: LayerTrained
    rivals: tuple[Rival, ...]
    """What gave the model's links before, in the same exam"""

    def check(self) -> None:
        """Raise ValueError if the layer is not worth keeping."""
        reason = why_not_kept(self.trained.scores, self.rivals)
        if reason is not None:
            raise ValueError(
                f"the new layer of {self.folder} is not kept: {reason}; train on more pairs or for "
                "longer, or keep it all the same with --force"
            )


@dataclass(frozen=True)
class TeachingResult:
    """What `train_aligners` did."""

    layers: tuple[LayerResult, ...]
    left_out: int
    """Pairs that were too long, or had no words on a side"""


def train_aligners(
    request: AlignerTraining, progress: Stage = lambda stage, done, total: None
) -> TeachingResult:
    """Train a layer for one model or two; directories are changed once all are trained.

    Heads that were chosen along the way are stored, too, if enough pairs decided.

    Raises:
        ValueError: there is nothing to learn from, or a layer is not worth keeping.
    """
    request.check()
    teaching = _Teaching(request, progress)
    teaching.train_teachers()
    directions = teaching.lessons()
    trained = teaching.train(directions)
    results = [
        teaching.result(number, layer, exam)
        for number, (layer, (_, exam)) in enumerate(zip(trained, directions, strict=True))
    ]
    if not request.force:
        for result in results:
            result.check()
    for member in teaching.members:
        member.check_unchanged()  # training takes long enough for another command to replace it
    for number, (result, layer) in enumerate(zip(results, trained, strict=True)):
        teaching.keep_choice(number)
        save_layer(result.folder, layer.layer, result.trained)
    return TeachingResult(tuple(results), teaching.left_out)


class _Teaching:
    """The models and pairs of one request."""

    def __init__(self, request: AlignerTraining, progress: Stage) -> None:
        self.request = request
        self.progress = progress
        folders = [request.model, *([] if request.reverse is None else [request.reverse])]
        self.members = [LoadedModel.load(folder, request.device) for folder in folders]
        limits = [member.max_tokens for member in self.members]
        self.max_tokens = min(limits) if request.max_tokens is None else request.max_tokens
        self.round = 1
        """The round that is under way"""
        self.minutes = 0.0
        """How long layers were trained"""
        self.left_out = 0
        self.learnt = 0
        self.known = [read_choice(member.folder, member.model.config) for member in self.members]
        """The heads that were chosen before"""
        self.choices = self.known if request.by_links else self._choices()
        self.teachers: list[list[Aligner]] = []
        """One for each model in each round that had some; none if the links are given"""
        if not request.by_links:
            heads = zip(self.members, self.choices, strict=True)
            self.teachers.append([self._aligner(member, choice=choice) for member, choice in heads])

    def _aligner(
        self,
        member: LoadedModel,
        *,
        choice: AlignmentChoice | None = None,
        layer: AlignmentLayer | None = None,
    ) -> Aligner:
        return Aligner(
            member.model,
            member.tokenizers,
            choice,
            layer=layer,
            max_tokens=self.max_tokens,
            name=str(member.folder),
        )

    @property
    def _has_gold(self) -> bool:
        """Whether there are gold links for the exam."""
        return self.request.valid is not None and _have_gold(self.request.valid)

    @property
    def teacher(self) -> Teacher:
        if self.request.by_links:
            return "links"
        return "one model" if self.request.reverse is None else "two models"

    @property
    def _is_last_round(self) -> bool:
        return self.round == self.request.all_rounds

    def _layers(self, round: int) -> int:
        """How many layers a round trains: before the last, also those that only teach."""
        if self.request.both or round < self.request.all_rounds:
            return len(self.members)
        return 1

    def train_teachers(self) -> None:
        """All rounds but the last: layers that teach those of the next round.

        They find more links than heads do, and better ones, so their pupils learn more.
        """
        while not self._is_last_round:
            trained = self.train(self.lessons())
            if any(why_not_kept(layer.scores, rivals=()) for layer in trained):
                self.round = self.request.all_rounds  # the teachers so far are better
                return
            layers = zip(self.members, trained, strict=True)
            self.teachers.append([self._aligner(member, layer=one.layer) for member, one in layers])
            self.round += 1

    def lessons(self) -> list[_Course]:
        """For each layer that this round trains, what it learns from, and its exam."""
        courses = self._courses()
        while len(self.teachers) > 1 and not all(_have_links(course) for course in courses):
            self.teachers.pop()  # these agree on nothing
            courses = self._courses()
        return courses

    def _courses(self) -> list[_Course]:
        self.left_out = 0
        layers, known = self._layers(self.round), self.request.by_links
        most = None if self._is_last_round else PAIRS_TO_TEACH
        lessons = self._make("links", self.request.pairs, layers, known=known, most=most)
        valid = self.request.valid
        if valid is not None:
            exams = self._make("links of the exam", valid, layers, known=self._has_gold)
            kind: Final = "gold" if self._has_gold else "teacher"
            directions = zip(lessons, exams, strict=True)
            found: list[_Course] = [(some, Exam(test, kind)) for some, test in directions]
        else:
            found = [self._hold_out(some) for some in lessons]
        self.learnt = len(found[0][0])
        return found

    def train(self, courses: Sequence[_Course]) -> list[TrainedLayer]:
        """Train the layers of this round."""
        return [self._train(number, *course) for number, course in enumerate(courses)]

    def _train(self, number: int, lessons: Sequence[Lesson], exam: Exam) -> TrainedLayer:
        """Train a layer for a model; models are numbered from 0."""
        settings = self.request.settings
        if not self._is_last_round:
            settings = replace(settings, epochs=settings.passes(len(lessons), PAIRS_TO_TEACH))
        if settings.minutes is not None:
            # What teachers do not need is left for the layers after them.
            left = max(settings.minutes - self.minutes, _LEAST_MINUTES)
            rounds = range(self.round, self.request.all_rounds + 1)
            layers_to_train = sum(map(self._layers, rounds)) - number
            settings = replace(settings, minutes=left / layers_to_train)
        layers = self._layers(self.round)
        stage = "training" if layers == 1 else f"training {number + 1} of {layers}"
        member = self.members[number]
        start = time.monotonic()
        with blamed_on(str(member.folder)):
            trained = train_layer(
                member.model,
                lessons,
                exam,
                settings,
                lambda done, total: self._tell(stage, done, total),
            )
        self.minutes += (time.monotonic() - start) / 60
        return trained

    def _tell(self, stage: str, done: int, total: int | None) -> None:
        rounds = self.request.all_rounds
        self.progress(
            stage if rounds == 1 else f"round {self.round} of {rounds}: {stage}", done, total
        )

    def result(self, number: int, layer: TrainedLayer, exam: Exam) -> LayerResult:
        """What was trained for a model, and how what it had before did in the same exam."""
        member = self.members[number]
        # In an exam on links that the heads taught, the heads would always be right.
        is_fair = exam.against == "gold" or self.request.by_links
        rivals = find_rivals(member, self.choices[number] if is_fair else None, exam)
        return LayerResult(member.folder, self._describe(number, layer), tuple(rivals))

    def keep_choice(self, number: int) -> None:
        """Write a choice of heads that was made in this run into the model's directory."""
        choice = self.choices[number]
        if choice is None or self.known[number] is not None:
            return
        if choice.chosen.pairs >= PAIRS_TO_KEEP_A_CHOICE:
            write_choice(self.members[number].folder, choice)

    def _describe(self, number: int, layer: TrainedLayer) -> LayerTrained:
        member = self.members[number]
        others = [str(other.folder) for other in self.members if other is not member]
        choice = None if self.request.by_links else self.choices[number]
        return LayerTrained(
            by=self.teacher,
            files=self.request.files,
            other_model=others[0] if others and self.teacher == "two models" else None,
            heads=None if choice is None else choice.in_words(),
            pairs=self.learnt,
            epochs=round(layer.epochs, 3),
            seed=self.request.settings.seed,
            rounds=max(len(self.teachers), 1),
            scores=layer.scores,
            relakit=version("relakit"),
        )

    def _make(
        self, stage: str, pairs: Pairs, layers: int, *, known: bool, most: int | None = None
    ) -> list[list[Lesson]]:
        """Lessons for each of the first layers, on so many pairs."""
        made: list[list[Lesson]] = [[] for _ in range(layers)]
        done, total = 0, len(pairs) if most is None else min(len(pairs), most)
        usable = islice(self._usable(pairs), most)
        while window := list(islice(usable, WINDOW)):
            links = [pair.gold or GoldAlignment(frozenset()) for pair in window]
            if not known:
                links = list(self._links(window))
            made[0] += make_lessons(self.members[0].tokenizers, window, links, are_complete=known)
            if len(made) > 1:
                turned = [pair.reversed() for pair in window]
                back = [some.reversed() for some in links]
                other = self.members[1].tokenizers
                made[1] += make_lessons(other, turned, back, are_complete=known)
            done += len(window)
            self._tell(stage, done, total)
        if not made[0]:
            raise ValueError(
                f"none of {len(pairs):,} pairs has words on both sides and at most "
                f"{self.max_tokens:,} tokens on each"
            )
        return made

    def _links(self, pairs: Sequence[AnalysisPair]) -> Iterator[GoldAlignment]:
        teachers = self.teachers[-1]
        if len(teachers) == 1:
            return teachers[0].mutual_links(pairs)
        forward, backward = teachers
        return links_of_two_models(forward, backward, pairs)

    def _hold_out(self, lessons: Sequence[Lesson]) -> _Course:
        """Turn some lessons, drawn by the seed, into an exam; both directions draw the same."""
        count = min(self.request.held_out, int(LARGEST_SHARE * len(lessons)))
        if count < 1:
            raise ValueError(
                f"there are {len(lessons):,} pairs, too few to train on; a tenth of them is held "
                "out, and that must be one at least"
            )
        order = np.random.default_rng(self.request.settings.seed).permutation(len(lessons))
        drawn = [lessons[index] for index in order]
        return drawn[count:], Exam(drawn[:count])

    def _usable(self, pairs: Iterable[AnalysisPair]) -> Iterator[AnalysisPair]:
        for pair in pairs:
            if self._fits(pair):
                yield pair
            else:
                self.left_out += 1

    def _fits(self, pair: AnalysisPair) -> bool:
        if not pair.has_words:
            return False
        tokenizers = [member.tokenizers for member in self.members]
        return fits_into(tokenizers[0], pair, self.max_tokens) and all(
            fits_into(other, pair.reversed(), self.max_tokens) for other in tokenizers[1:]
        )

    def _choices(self) -> list[AlignmentChoice | None]:
        """Which heads each model's links are read from: those chosen before, or found now."""
        if all(self.known):
            return self.known
        self.progress("choosing heads", 0, None)
        # Gold links are the best guide to which heads align.
        pairs = self.request.valid if self._has_gold else self.request.pairs
        assert pairs is not None
        found = choose(
            self.members[0],
            self.members[1] if len(self.members) > 1 else None,
            list(islice((pair for pair in pairs if pair.has_words), PAIRS_TO_CHOOSE_ON)),
            self.request.files,
            max_tokens=self.max_tokens,
        )
        return [old or new for old, new in zip(self.known, found, strict=False)]

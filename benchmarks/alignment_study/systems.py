"""Ways of aligning: attention, alignment layers and eflomal, in one direction and in both."""

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from alignment_study.material import Material
from alignment_study.records import AlignmentRecord, Trained, score
from relakit.align.aligner import Aligner, TwoWayAligner
from relakit.align.alignment import Alignment
from relakit.align.choice import AlignmentChoice, ChosenOn, write_choice
from relakit.align.choosing import LoadedModel, choose
from relakit.align.settings import PAIRS_TO_CHOOSE_ON, Symmetrization
from relakit.align.symmetrize import symmetrize
from relakit.align.teach import AlignerTraining, train_aligners
from relakit.align.train_layer import LayerSettings
from relakit.analysis import AnalysisPair, bootstrap_alignment, count_pair_links
from relakit.analysis.links import READINGS, Links
from relakit.bench.machine import describe_machine
from relakit.reproduce.eflomal import eflomal_links, why_no_eflomal
from relakit.train.run_folder import RESULT

ATTENTIONS: Final = ("softmax", "rela-g")
EFLOMAL: Final = "eflomal"
REVERSE: Final = "-reverse"
"""Suffix of the name of a model for the other direction."""
METHOD: Final[Symmetrization] = "grow-diag-final"
ONE_WAY, OTHER_WAY, BOTH = "one direction", "other direction", "both directions"


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How alignment layers are trained."""

    pairs: int | None = None
    """The most pairs to learn from; None: all"""
    epochs: int | None = None
    seed: int = 1


def measure_eflomal(material: Material, cache: Path) -> Iterator[AlignmentRecord]:
    """Score eflomal, which learns from the pairs that the models were trained on."""
    if reason := why_no_eflomal():
        raise ValueError(reason)
    gold = material.gold()
    learned = list(material.learned())
    links = eflomal_links(learned, gold, cache)
    about = f"{len(learned):,} pairs and the gold set's own texts, 5 times the usual iterations"
    both = [symmetrize(one.forward, one.reverse, METHOD) for one in links]
    ways = {
        ONE_WAY: [one.forward for one in links],
        OTHER_WAY: [one.reverse for one in links],
        BOTH: both,
    }
    for way, found in ways.items():
        yield score(material.name, EFLOMAL, way, gold, found, about=about)


class ModelStudy:
    """Copies of a model, and of the one for the other direction if it exists, to add layers to."""

    def __init__(self, material: Material, attention: str, models: Path, work: Path) -> None:
        """``models`` has one folder per model; this study's models are copied to ``work``."""
        self._material = material
        self._attention = attention
        self._gold = material.gold()
        self._forward = _copied(models / attention, work / attention)
        other = models / f"{attention}{REVERSE}"
        self._backward = None
        if other.is_dir():
            self._backward = _copied(other, work / other.name)
        self._trained = (_trained(models / attention), _trained(other))

    def averages(self) -> Iterator[AlignmentRecord]:
        """The paper's AoL and AoH: means over layers, for averaged heads and for the best head."""
        aligner = Aligner.load(self._forward, choice=_anything(), use_layer=False)
        links = count_pair_links(aligner.model, aligner.tokenizers, self._gold)["ignored"]
        estimates = bootstrap_alignment(links)
        for reading in READINGS:
            found = getattr(estimates, reading)
            for way, aer in (("AoL", found.aol), ("AoH", found.aoh)):
                yield AlignmentRecord(
                    study=self._material.name,
                    system=self._attention,
                    way=f"{way}, {reading}",
                    about="the mean over layers",
                    pairs=estimates.pairs,
                    aer=aer,
                    trained=self._trained,
                    machine=describe_machine(),
                )

    def attention(self) -> Iterator[AlignmentRecord]:
        """Attention of the heads that were chosen on other pairs, without gold links."""
        pairs = self._material.chosen_on()[:PAIRS_TO_CHOOSE_ON]
        models = [
            None if folder is None else LoadedModel.load(folder)
            for folder in (self._forward, self._backward)
        ]
        assert models[0] is not None
        there, back = choose(models[0], models[1], pairs, ["the validation set"])
        write_choice(self._forward, there)
        abouts = [_described(there)]
        if self._backward is not None and back is not None:
            write_choice(self._backward, back)
            abouts.append(_described(back))
        yield from self._scored("attention", abouts, use_layer=False)

    def layers(self, learning: Learning) -> Iterator[AlignmentRecord]:
        """Alignment layers, which learn from the attention of both models."""
        pairs = list(self._material.learned())[: learning.pairs]
        start = time.process_time()
        done = train_aligners(
            AlignerTraining(
                model=self._forward,
                reverse=self._backward,
                pairs=pairs,
                files=("the training set",),
                settings=LayerSettings(epochs=learning.epochs, seed=learning.seed),
                force=True,  # whether it helps is what we measure
            )
        )
        seconds = time.process_time() - start
        passes = {None: "", 1: ", once"}.get(learning.epochs, f", {learning.epochs} times")
        rounds = done.layers[0].trained.rounds
        about = f"{len(pairs):,} pairs{passes}, {rounds} rounds, seed {learning.seed}"
        yield from self._scored(
            "layer", [about] * len(done.layers), use_layer=True, seconds=seconds
        )

    def _scored(
        self, what: str, abouts: Sequence[str], *, use_layer: bool, seconds: float | None = None
    ) -> Iterator[AlignmentRecord]:
        forward = Aligner.load(self._forward, use_layer=use_layer)
        yield self._record(f"{what}, {ONE_WAY}", abouts[0], forward.align(self._gold), seconds)
        if self._backward is None:
            return
        backward = Aligner.load(self._backward, use_layer=use_layer)
        turned = backward.align([pair.reversed() for pair in self._gold])
        found = (one.reversed() for one in turned)
        yield self._record(f"{what}, {OTHER_WAY}", abouts[1], found, seconds)
        both = TwoWayAligner(forward, backward, METHOD)
        about = " and ".join(dict.fromkeys(abouts))
        yield self._record(f"{what}, {BOTH}", about, both.align(self._gold), seconds)

    def _record(
        self, way: str, about: str, found: Iterable[Alignment], seconds: float | None
    ) -> AlignmentRecord:
        links: list[Links] = [one.links for one in found]
        gold: list[AnalysisPair] = self._gold
        return score(
            self._material.name,
            self._attention,
            way,
            gold,
            links,
            about=about,
            trained=self._trained,
            cpu_seconds=seconds,
        )


def _described(choice: AlignmentChoice) -> str:
    return f"{choice.in_words()}, by {choice.chosen.by}"


def _anything() -> AlignmentChoice:
    return AlignmentChoice(layer=0, heads=(0,), reading="normal", chosen=ChosenOn(by="given"))


def _trained(run: Path) -> Trained | None:
    """How a training run ended; None for a model without its run."""
    try:
        result = json.loads((run / RESULT).read_bytes())
    except FileNotFoundError:
        return None
    return Trained(
        verdict=result["verdict"],
        updates=result["updates"],
        bleu=result["scores"].get("test", {}).get("bleu"),
    )


def _copied(model: Path, to: Path) -> Path:
    """Copy a model directory, so that choices and layers are not written into the user's own."""
    folder = model / "model" if (model / "model").is_dir() else model
    return Path(shutil.copytree(folder, to))

"""Scoring and aligning: all contenders take turns on the same pairs."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

import torch

from relakit.align.choice import AlignmentChoice, ChosenOn, read_choice
from relakit.align.layer_files import has_layer
from relakit.align.work import AlignSettings, AlignWork
from relakit.analysis.settings import BATCH_TOKENS
from relakit.bench.rounds import Contender, ContenderError, Field, Turn
from relakit.clean.score_work import ScoreWork
from relakit.clean.scorer import PairScorer
from relakit.data.generated import generate_pairs
from relakit.data.languages import LanguagePair
from relakit.data.parallel_files import NumberedPair, ParallelFiles, read_numbered_pairs
from relakit.data.tokenizer import learn_tokenizer
from relakit.model import ATTENTION_KINDS, ModelAbout, ModelConfig, Transformer, save_model
from relakit.model.config import sized
from relakit.model.description import ModelDescription, read_description
from relakit.model.directory import load_model
from relakit.shards.work import Work
from toolkits.decoding_turns import attention_name
from toolkits.models import describe_model
from toolkits.pair_settings import ALIGN, CTRANSLATE2, EFLOMAL, SCORE, PairSettings
from toolkits.peer_weights import why_no_peer_has_it, write_peer_weights
from toolkits.peers import PeerPlace, Peers
from toolkits.settings import GENERATED
from workers import Worker, number_of

TOLERANCE: Final = {"fp32": 1e-3, "int8": 0.5}
"""How far a peer's nats per token may differ from ours on average, by precision."""
WARM_UP: Final = 20
"""Number of pairs to warm up with."""


def read_bench_pairs(settings: PairSettings) -> list[NumberedPair]:
    """The pairs, none with a blank side.

    Raises:
        OSError, ValueError: the files are broken, or have too few pairs.
    """
    if settings.source == GENERATED:
        made = generate_pairs(settings.pairs, split="test", seed=settings.seed)
        return [NumberedPair(n, p.source_text, p.target_text) for n, p in enumerate(made, start=1)]
    files = ParallelFiles(Path(settings.source), Path(settings.target))
    usable = (pair for pair in read_numbered_pairs(files) if not pair.has_blank_side)
    pairs = list(islice(usable, settings.pairs))
    if len(pairs) < settings.pairs:
        raise ValueError(
            f"{settings.source} has {len(pairs):,} pairs with text, fewer than --pairs "
            f"{settings.pairs:,}"
        )
    return pairs


def model_folders(
    settings: PairSettings, pairs: Sequence[NumberedPair], folder: Path
) -> dict[str, Path]:
    """Model directories by attention name: those given, or new ones."""
    if settings.models:
        found: dict[str, Path] = {}
        for name in settings.models:
            attention = attention_name(read_description(name).config)
            if attention in found:
                raise ValueError(f"{found[attention]} and {name} both have {attention} attention")
            found[attention] = Path(name)
        return found
    tokenizer = learn_tokenizer([t for pair in pairs for t in pair.texts], settings.vocabulary)
    tokenizer.save(folder / "tokenizer.json")
    languages = LanguagePair.learn(*zip(*(pair.texts for pair in pairs), strict=True))
    folders = {}
    for name in settings.attentions:
        torch.manual_seed(settings.seed)
        fields = {**sized(settings.size), "vocabulary": tokenizer.size}
        attentions = {f"{kind}_attention": name for kind in ATTENTION_KINDS}
        model = Transformer(ModelConfig.model_validate({**fields, **attentions})).eval()
        folders[name] = save_model(
            folder / f"model-{name}",
            model,
            folder / "tokenizer.json",
            ModelAbout("en", "de"),
            languages=languages,
        )
    return folders


class OwnWork:
    """relakit: what a worker process of the command does with its shards."""

    def __init__(self, work: Work, pairs: Sequence[NumberedPair]) -> None:
        self._work = work
        self._pairs = pairs

    def warm_up(self, case: str) -> None:
        self._work.run(self._pairs[:WARM_UP], lambda count: None)

    def run(self, case: str, number: int) -> Turn:
        start = time.perf_counter()
        self._work.run(self._pairs, lambda count: None)
        return Turn(time.perf_counter() - start, {"pairs": len(self._pairs)})


class PeerScoring:
    """CTranslate2's ``score_batch``."""

    def __init__(self, peer: Worker, tokens: "TokenPairs") -> None:
        self._peer = peer
        self.tokens = tokens

    def warm_up(self, case: str) -> None:
        self.ask(WARM_UP)

    def run(self, case: str, number: int) -> Turn:
        answer = self.ask(len(self.tokens.sources))
        return Turn(number_of(answer, "seconds"), {"pairs": len(self.tokens.sources)})

    def ask(self, count: int) -> dict[str, Any]:
        return self._peer.ask(
            "score",
            sources=self.tokens.sources[:count],
            targets=self.tokens.targets[:count],
            batch_tokens=BATCH_TOKENS,
        )


class Eflomal:
    """eflomal's own program, run once for all pairs."""

    def __init__(self, program: Path, pairs: Sequence[NumberedPair], folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._pairs = len(pairs)
        for side, name in enumerate(("source", "target")):
            words = (" ".join(pair.texts[side].lower().split()) for pair in pairs)
            (folder / name).write_text("".join(f"{line}\n" for line in words), encoding="utf-8")

    def warm_up(self, case: str) -> None:
        """Nothing stays in memory between runs."""

    def run(self, case: str, number: int) -> Turn:
        command = [str(self._program.absolute()), "-s", "source", "-t", "target", "--overwrite"]
        start = time.perf_counter()
        try:
            done = subprocess.run(
                [*command, "-f", "forward", "-r", "reverse"],
                cwd=self._folder,
                check=False,
                capture_output=True,
                text=True,
            )
        except OSError as error:
            raise ContenderError(f"cannot start {self._program}: {error}") from None
        seconds = time.perf_counter() - start
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            raise ContenderError(f"ended with {done.returncode}: {last}")
        lines = (self._folder / "forward").read_text().count("\n")
        if lines != self._pairs:
            raise ContenderError(f"aligned {lines:,} of {self._pairs:,} pairs")
        return Turn(seconds, {"pairs": self._pairs})


@dataclass(frozen=True)
class TokenPairs:
    """The pairs for contenders that take tokens, and relakit's nats per target token for them."""

    sources: list[list[int]]
    targets: list[list[int]]
    entropies: list[float]


@contextmanager
def pair_field(
    settings: PairSettings, place: PeerPlace, eflomal: Path | None, folder: Path
) -> Iterator[Field]:
    """All contenders, ready to run; peers end with the block."""
    pairs = read_bench_pairs(settings)
    folders = model_folders(settings, pairs, folder)
    field = Field()
    for name, model in folders.items():
        described = read_description(model)
        for what, work in ((SCORE, _scoring(model)), (ALIGN, _aligning(model, described))):
            field.contenders[f"{what}, {name}"] = OwnWork(work, pairs)
            field.about[f"{what}, {name}"] = describe_model(described.config)
    with Peers(place, threads=settings.threads, folder=folder) as peers:
        for label in settings.peers:
            if label == EFLOMAL:
                field.enter(label, lambda: _eflomal(eflomal, pairs, folder))
            else:
                precision = label.removeprefix(f"{CTRANSLATE2} ")
                model_folder = folders.get("softmax")
                ready = partial(_ctranslate2, peers, settings, model_folder, precision, pairs)
                field.enter(label, partial(ready, folder))
        yield field


def _scoring(folder: Path) -> ScoreWork:
    languages = read_description(folder).languages()
    return ScoreWork(PairScorer.load(folder, languages=languages))


def _aligning(folder: Path, described: ModelDescription) -> AlignWork:
    """Align with the model's alignment layer or chosen heads, or else with its last layer."""
    if has_layer(folder):
        return AlignWork(AlignSettings(model=folder))
    config = described.config
    choice = read_choice(folder, config) or AlignmentChoice(
        layer=config.decoder_layers - 1,
        heads=tuple(range(config.heads)),
        reading="normal",
        chosen=ChosenOn(by="given"),
    )
    return AlignWork(AlignSettings(model=folder, choice=choice))


def _eflomal(
    program: Path | None, pairs: Sequence[NumberedPair], folder: Path
) -> tuple[Contender, str]:
    if program is None:
        raise ContenderError(
            "not installed: pip install 'relakit[reproduce]', or --eflomal PROGRAM"
        )
    place = folder / "eflomal"
    place.mkdir()
    return Eflomal(program, pairs, place), "eflomal-align, its own defaults"


def _ctranslate2(
    peers: Peers,
    settings: PairSettings,
    model: Path | None,
    precision: str,
    pairs: Sequence[NumberedPair],
    folder: Path,
) -> tuple[Contender, str]:
    if model is None:
        raise ContenderError("it needs a model with softmax attention, and there is none")
    config = read_description(model).config
    problem = why_no_peer_has_it(config)
    if problem is not None:
        raise ContenderError(problem)
    weights = folder / "weights.safetensors"
    write_peer_weights(weights, load_model(model)[0])
    peer = peers.start(CTRANSLATE2)
    answer = peer.ask(
        "setup-decode", model=str(weights), threads=settings.threads, precision=precision
    )
    scoring = PeerScoring(peer, _tokens(model, pairs))
    difference = check_entropies(scoring, TOLERANCE[precision])
    return scoring, f"{answer.get('about', '')}, differs by {difference:.2g} nats per token"


def _tokens(model: Path, pairs: Sequence[NumberedPair]) -> TokenPairs:
    tokenizers = read_description(model).tokenizers
    scored = PairScorer.load(model).score(pairs[:WARM_UP])
    return TokenPairs(
        [list(tokenizers.source.encode(pair.source).ids) for pair in pairs],
        [list(tokenizers.target.encode(pair.target).ids) for pair in pairs],
        [one.features.cross_entropy for one in scored if one.features is not None],
    )


def check_entropies(peer: PeerScoring, most: float) -> float:
    """How far a peer's nats per token differ from relakit's, averaged over some pairs.

    Raises:
        ContenderError: they differ so much that the peer cannot be computing the same model.
    """
    theirs = cast("list[float]", peer.ask(WARM_UP).get("cross_entropies"))
    ours = peer.tokens.entropies
    if not isinstance(theirs, list) or len(theirs) != len(ours):
        raise ContenderError(f"did not score all of {len(ours)} pairs")
    difference = sum(abs(a - b) for a, b in zip(theirs, ours, strict=True)) / len(ours)
    if not difference <= most:
        raise ContenderError(
            f"its cross-entropies differ from relakit's by {difference:.3g} nats per token, more "
            f"than {most:g}: it does not compute the same model"
        )
    return difference

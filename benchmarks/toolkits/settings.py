"""What training and decoding benchmarks measure, and who takes part. No torch here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from relakit.data.prepared_format import PrepareSettings
from relakit.decode.settings import SearchSettings
from relakit.known_names import known_name
from toolkits.peers import DECODING_PEERS, TRAINING_PEERS, check_peers

ATTENTION_NAMES: Final = ("softmax", "rela-g", "sparsemax", "entmax15")
"""The rows of the paper's Table 2."""
PRECISIONS: Final = ("fp32", "bf16")
DECODING_PRECISIONS: Final = ("fp32", "bf16", "int8")
CTRANSLATE2_PRECISIONS: Final = ("fp32", "int8")
GENERATED: Final = "generated"
RELAKIT: Final = "relakit"


@dataclass(frozen=True, kw_only=True)
class System:
    """A toolkit in one configuration."""

    system: str
    """relakit, or the name of a peer."""
    attention: str
    precision: str

    @property
    def label(self) -> str:
        """A name that is unique within a run."""
        name = self.attention if self.is_ours else self.system
        return f"{name} {self.precision}"

    @property
    def is_ours(self) -> bool:
        return self.system == RELAKIT


def baseline_of(system: System, systems: Sequence[System]) -> System | None:
    """What a system's speed is divided by: relakit's softmax, in the same precision.

    If that precision was not measured (a peer's int8), it is softmax in float32.
    """
    softmax = {s.precision: s for s in systems if s.is_ours and s.attention == "softmax"}
    return softmax.get(system.precision, softmax.get("fp32"))


@dataclass(frozen=True, kw_only=True)
class SpeedSettings:
    """What training and decoding have in common."""

    attentions: tuple[str, ...] = ATTENTION_NAMES
    peers: tuple[str, ...] = ()
    precisions: tuple[str, ...] = PRECISIONS
    size: str = "small"
    """The name of a model size."""
    vocabulary: int = PrepareSettings.vocab_size
    threads: int = 1
    rounds: int = 10
    seed: int = 1
    corpus: str = GENERATED
    """The folder of a prepared corpus, or "generated"."""

    known_precisions: ClassVar[tuple[str, ...]] = PRECISIONS

    def __post_init__(self) -> None:
        for name in ("vocabulary", "threads", "rounds"):
            _at_least(name, getattr(self, name), 1)
        for precision in self.precisions:
            known_name("precision", precision, self.known_precisions)
        for name in ("attentions", "precisions"):
            if not getattr(self, name):
                raise ValueError(f"{name} must name at least one")
        for name in ("attentions", "precisions", "peers"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name} must differ, got {', '.join(values)}")

    def own_systems(self) -> list[System]:
        """relakit with each attention, in each precision."""
        return [
            System(system=RELAKIT, attention=attention, precision=precision)
            for precision in self.precisions
            for attention in self.attentions
        ]

    def systems(self) -> list[System]:
        """All systems that are to take part."""
        peers = [
            System(system=peer, attention="softmax", precision=precision)
            for peer in self.peers
            for precision in self.precisions_of(peer)
        ]
        return [*self.own_systems(), *peers]

    def precisions_of(self, peer: str) -> tuple[str, ...]:
        """The precisions that a peer is measured in."""
        if peer.startswith("ctranslate2"):
            return CTRANSLATE2_PRECISIONS
        return tuple(precision for precision in self.precisions if precision in PRECISIONS)


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(SpeedSettings):
    """How training is measured."""

    steps: int = 2
    """Updates per turn."""
    batch_tokens: int = 4096
    """The most padded tokens in a batch; an update has one batch."""
    dropout: float = 0.1
    label_smoothing: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_peers(self.peers, TRAINING_PEERS)
        _at_least("steps", self.steps, 1)
        _at_least("batch_tokens", self.batch_tokens, 1)


@dataclass(frozen=True, kw_only=True)
class DecodingSettings(SpeedSettings):
    """How translation is measured."""

    precisions: tuple[str, ...] = ("fp32", "int8")
    known_precisions: ClassVar[tuple[str, ...]] = DECODING_PRECISIONS
    rounds: int = 5
    models: tuple[str, ...] = ()
    """Model directories; without any, models with random weights."""
    batch_sizes: tuple[int, ...] = (64, 1)
    """Sentences that are translated together."""
    beam: int = SearchSettings.beam
    length_penalty: float = SearchSettings.length_penalty
    sentences: int | None = None
    """Sentences for each batch size; None: four batches, but at least 32 sentences."""
    groups: int = 10
    """Groups of sentences by source length; 0 for none."""
    group_sentences: int = 16
    """Sentences in each group, translated one by one."""
    exact_length: bool = True
    """Whether all translations in a batch get the mean length of its references."""
    split: str = "test"
    """The part of the corpus that is translated."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_peers(self.peers, DECODING_PEERS)
        for size in self.batch_sizes:
            _at_least("batch sizes", size, 1)
        for name, least in (("beam", 1), ("groups", 0), ("group_sentences", 1)):
            _at_least(name, getattr(self, name), least)
        if self.sentences is not None:
            _at_least("sentences", self.sentences, 1)
        if not self.batch_sizes and not self.groups:
            raise ValueError("nothing to measure: give a batch size or groups of lengths")
        if not self.models and not self.exact_length:
            raise ValueError(
                "random weights translate into sentences of random length: fix the length, or "
                "give trained models"
            )

    def sentences_for(self, batch_size: int) -> int:
        """How many sentences are translated with this batch size."""
        return max(32, 4 * batch_size) if self.sentences is None else self.sentences


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")

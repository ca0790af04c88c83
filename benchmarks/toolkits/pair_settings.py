"""What the benchmark of scored and aligned pairs measures, and who takes part. No torch here."""

from dataclasses import dataclass
from typing import Final

from relakit.data.prepared_format import PrepareSettings
from toolkits.settings import GENERATED

SCORE, ALIGN = "relakit score", "relakit align"
EFLOMAL: Final = "eflomal"
CTRANSLATE2: Final = "ctranslate2"
PEERS: Final = ("ctranslate2 int8", "ctranslate2 fp32", EFLOMAL)
ATTENTIONS: Final = ("rela-g", "softmax")
WHAT_THEY_COMPUTE: Final = {
    SCORE: "tokenization, the attention of all layers and heads, null rates, unsupported and "
    "uncovered words, losses of all tokens, length ratios, languages; rows of a table",
    ALIGN: "tokenization, the attention of one layer, links between words; lines of text",
    CTRANSLATE2: "log-probabilities of the target's tokens alone (score_batch), from tokens that "
    "are given, with the softmax model's weights",
    EFLOMAL: "links in both directions, learned from these pairs together; files in, files out",
}
"""They compute different things: listed so that nobody reads too much into a ratio."""


@dataclass(frozen=True, kw_only=True)
class PairSettings:
    """How scoring and aligning are measured."""

    models: tuple[str, ...] = ()
    """Model directories; without any, models with random weights."""
    attentions: tuple[str, ...] = ATTENTIONS
    """Attentions of models with random weights."""
    size: str = "small"
    vocabulary: int = PrepareSettings.vocab_size
    source: str = GENERATED
    """A file of sentences, or "generated"."""
    target: str = GENERATED
    pairs: int = 2000
    """Number of pairs; the first ones, if they come from files."""
    peers: tuple[str, ...] = PEERS
    threads: int = 1
    rounds: int = 5
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("vocabulary", "pairs", "threads", "rounds"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.models and not self.attentions:
            raise ValueError("attentions must name at least one")
        for peer in self.peers:
            if peer not in PEERS:
                raise ValueError(f"unknown peer {peer!r}; choose from {', '.join(PEERS)}, or none")
        if (self.source == GENERATED) != (self.target == GENERATED):
            raise ValueError("--source and --target belong together; give both, or none")

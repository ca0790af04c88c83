"""What an analysis found, with its settings: JSON in and out. No torch here."""

import statistics
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from relakit.analysis.alignment_report import AlignmentReport
from relakit.writing import write_whole

Kind: TypeAlias = Literal["encoder", "decoder", "cross"]
"""Which attention: the encoder's on itself, the decoder's on itself, the decoder's on the
encoder."""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
LayerValues: TypeAlias = tuple[float | None, ...]
"""One for each layer; None where nothing was counted."""
HeadValues: TypeAlias = tuple[LayerValues, ...]
"""``[layers][heads]``; None where nothing was counted."""

TEMPERATURES: Final = (1.0, 0.5, 0.25, 0.1)
"""Of Table 6."""


class _Result(BaseModel):
    """Frozen, and strict about what it reads."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Interval(_Result):
    """A mean over sentences with its confidence interval (normal approximation)."""

    mean: float
    low: float
    high: float


class AnalysisSettings(_Result):
    """What the numbers depend on, besides model and data."""

    temperatures: tuple[float, ...] = TEMPERATURES
    """For the diversity of attention that does not sum to 1"""
    shuffle_seed: int = 1
    """Of the permutation that gives each target another pair's source"""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    """Level of the confidence intervals"""


class KindResult(_Result):
    """The numbers of one kind of attention. Layers and heads are numbered from 0."""

    kind: Kind
    attention: str
    """A name in `relakit.ATTENTIONS`"""
    queries: int
    """Rows of attention in each head"""
    sparsity: HeadValues
    """Share of weights that are exactly 0, among the keys that are not masked"""
    null_rate: HeadValues
    """Share of queries whose weights are all 0"""
    layer_null_rate: LayerValues
    """Share of queries that are null in every head of the layer"""
    first_sink: HeadValues
    """Share of the attention weight that lies on the first key, over queries that have another"""
    end_sink: HeadValues | None
    """Share of the attention weight that lies on the end-of-sentence key; None in the decoder's
    self-attention, which has none"""
    diversity: dict[str, LayerValues]
    """Generalised Jensen-Shannon divergence of the heads in nats, by temperature ("1", "0.5" …).
    Attention that sums to 1 is taken as it is: it has the one entry "1"."""

    @property
    def layers(self) -> int:
        return len(self.sparsity)

    @property
    def heads(self) -> int:
        return len(self.sparsity[0])

    def null_variance(self) -> LayerValues:
        """Of each layer: the (population) variance of the null rate over its heads."""
        return tuple(
            None if None in layer else statistics.pvariance([x for x in layer if x is not None])
            for layer in self.null_rate
        )


class ShuffledResult(_Result):
    """Null rates of the same targets, each with the source of another pair (Figure 6)."""

    pairs: int
    null_rate: dict[Kind, HeadValues]
    """Of decoder and cross attention; the encoder sees no target"""
    cross_gap: tuple[Interval, ...]
    """By layer: cross-attention null rate (mean over heads) of a target with the wrong source
    minus that with its own, over sentences"""


class ClassNullRates(_Result):
    """Cross-attention null rates by the class of the target word that was just written."""

    origin: Literal["tags", "token classes"]
    """Where the classes are from: tags that were given, or what the word looks like"""
    classes: tuple[str, ...]
    """By falling count"""
    counts: tuple[int, ...]
    """Queries of each class"""
    null_rate: tuple[tuple[LayerValues, ...], ...]
    """``[layers][heads][classes]``"""


class FlopCounts(_Result):
    """Table 4's formulas for this model at one length."""

    length: int
    softmax: int
    rela_g: int


class ModelAnalysis(_Result):
    """All numbers of one model on one test set."""

    format: Literal["relakit analysis"] = "relakit analysis"
    version: Literal[1] = 1
    name: str
    """What the model is called in tables and figures"""
    settings: AnalysisSettings
    inputs: dict[str, str] = Field(default_factory=dict)
    """What was analysed and how it was read and translated, for people: files, options"""
    pairs: int
    source_tokens: int
    """With end-of-sentence tokens"""
    target_tokens: int
    kinds: tuple[KindResult, ...]
    """Encoder, decoder, cross"""
    shuffled: ShuffledResult | None = None
    """None where there is but one pair"""
    classes: ClassNullRates
    flops: tuple[FlopCounts, ...]
    bleu: float | None = None
    """Of the model's own translations; None where it did not translate"""
    bleu_signature: str | None = None
    alignment: AlignmentReport | None = None
    """None without gold links"""

    @model_validator(mode="after")
    def _check_kinds(self) -> "ModelAnalysis":
        found = tuple(kind.kind for kind in self.kinds)
        if found != KINDS:
            raise ValueError(f"kinds must be {', '.join(KINDS)}, got {', '.join(found)}")
        return self

    def kind(self, kind: Kind) -> KindResult:
        return next(result for result in self.kinds if result.kind == kind)

    def write(self, path: Path) -> None:
        """Write as JSON, whole or not at all."""
        write_whole(path, (self.model_dump_json(indent=1) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> "ModelAnalysis":
        """Read what `write` wrote.

        Raises:
            ValueError: the file, and why it is no analysis.
        """
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the document"
            raise ValueError(f"{path} is no analysis: {where}: {first['msg']}") from None

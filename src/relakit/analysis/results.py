"""The results of an analysis and its settings, written to and read from JSON. No torch here."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from relakit.analysis.aer import AlignmentScore, AttentionScores, LinkCounts
from relakit.analysis.estimate import CONFIDENCE, Estimate
from relakit.analysis.gold import GoldAlignment
from relakit.analysis.links import END_WEIGHTS, READINGS, EndWeight, Reading
from relakit.analysis.sentence_links import SentenceLinks
from relakit.analysis.settings import SHUFFLE_SEED, TEMPERATURES
from relakit.analysis.word_map import Span
from relakit.attention_kinds import ATTENTION_KINDS, AttentionKind
from relakit.data.setting_errors import explain_document
from relakit.files.writing import write_whole
from relakit.known_names import known_name

LayerValues: TypeAlias = tuple[float | None, ...]
"""One value per layer; None where nothing was counted."""
HeadValues: TypeAlias = tuple[LayerValues, ...]
"""``[layers][heads]``; None where nothing was counted."""


def mean_of(values: Iterable[Sequence[float | None]]) -> float | None:
    """The mean over all heads of all layers that have a value; None if none has."""
    known = [value for layer in values for value in layer if value is not None]
    return statistics.fmean(known) if known else None


def layer_means(values: Iterable[Sequence[float | None]]) -> list[float | None]:
    """The mean over each layer's heads that have a value; None if none has."""
    return [mean_of([layer]) for layer in values]


class _Result(BaseModel):
    """The base of all results: frozen, and strict about what it reads."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Interval(_Result):
    """A mean over sentences with its confidence interval (normal approximation)."""

    mean: float
    low: float
    high: float

    @property
    def estimate(self) -> Estimate:
        return Estimate(value=self.mean, low=self.low, high=self.high)


class AnalysisSettings(_Result):
    """What the numbers depend on, besides model and data."""

    temperatures: tuple[float, ...] = TEMPERATURES
    """For the diversity of attention that does not sum to 1"""
    shuffle_seed: int = SHUFFLE_SEED
    """Seed of the permutation that gives each target another pair's source"""
    confidence: float = Field(default=CONFIDENCE, gt=0, lt=1)
    """Level of the confidence intervals"""


class KindResult(_Result):
    """The numbers of one kind of attention. Layers and heads are numbered from 0."""

    kind: AttentionKind
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
    """Share of the attention weight that lies on the first key, over queries with other keys"""
    end_sink: HeadValues | None
    """Share of the attention weight that lies on the end-of-sentence key; None in the decoder's
    self-attention, which has none"""
    diversity: dict[str, LayerValues]
    """Generalised Jensen-Shannon divergence of the heads in nats, by temperature ("1", "0.5" …).
    Attention that sums to 1 is used unchanged and has only the entry "1"."""
    output_rms: LayerValues | None = None
    """Root mean square of the heads' output before its norm; None if it was not measured, and in
    files written before this number existed"""
    closed_gates: LayerValues | None = None
    """Share of the norm's gates that are below 0.01; None without gates, and in such old files"""

    @property
    def layers(self) -> int:
        return len(self.sparsity)

    @property
    def heads(self) -> int:
        return len(self.sparsity[0])

    def null_variance(self) -> LayerValues:
        """The (population) variance of the null rate over the heads of each layer."""
        return tuple(
            None if None in layer else statistics.pvariance([x for x in layer if x is not None])
            for layer in self.null_rate
        )


class ShuffledResult(_Result):
    """Null rates of the same targets, each given another pair's source (Figure 6)."""

    pairs: int
    null_rate: dict[AttentionKind, HeadValues]
    """For decoder and cross-attention; the encoder sees no target"""
    cross_gap: tuple[Interval, ...]
    """By layer: cross-attention null rate (mean over heads) of a target with the wrong source
    minus its rate with its own source, averaged over sentences"""


class ClassNullRates(_Result):
    """Cross-attention null rates by the class of the target word that was just written."""

    origin: Literal["tags", "token classes"]
    """Where the classes come from: given tags, or what the word looks like"""
    classes: tuple[str, ...]
    """By decreasing count"""
    counts: tuple[int, ...]
    """Queries of each class"""
    null_rate: tuple[tuple[LayerValues, ...], ...]
    """``[layers][heads][classes]``"""

    def is_frequent(self, number: int) -> bool:
        """Whether a class, from 0, is worth reporting: at least 1% of the largest one's queries."""
        return self.counts[number] >= max(self.counts) / 100


class FlopCounts(_Result):
    """Table 4's formulas for this model at one length."""

    length: int
    softmax: int
    rela_g: int


@dataclass(frozen=True, kw_only=True)
class AlignmentSettings:
    """What the scores of alignments depend on, besides model and data."""

    end: EndWeight = "ignored"

    def __post_init__(self) -> None:
        known_name("end", self.end, END_WEIGHTS)


@dataclass(frozen=True, kw_only=True)
class AlignmentResult:
    """How well the cross-attention aligns words: every layer and head against gold links."""

    settings: AlignmentSettings
    attention: str
    """The model's cross-attention, a name in `relakit.ATTENTIONS`"""
    pairs: int
    """Sentence pairs that were aligned"""
    normal: AttentionScores
    """Scores of attention in the step that predicts a token"""
    shifted: AttentionScores
    """Scores of attention in the step that has the token as input"""

    @classmethod
    def from_counts(
        cls, counts: LinkCounts, *, settings: AlignmentSettings, attention: str
    ) -> "AlignmentResult":
        """Compute the scores from counts.

        Raises:
            ValueError: there are no sure links.
        """
        if not counts.sure:
            raise ValueError(f"the {counts.pairs:,} pairs have no sure link to compare with")
        return cls(
            settings=settings,
            attention=attention,
            pairs=counts.pairs,
            normal=counts.scores("normal"),
            shifted=counts.scores("shifted"),
        )

    def scores(self, reading: Reading) -> AttentionScores:
        known_name("reading", reading, READINGS)
        return self.normal if reading == "normal" else self.shifted

    @property
    def best_reading(self) -> Reading:
        """The reading that has the best head."""
        return min(READINGS, key=lambda reading: self.best_score(reading).aer)

    def best_score(self, reading: Reading) -> AlignmentScore:
        """The score of the reading's best head."""
        scores = self.scores(reading)
        layer, head = scores.best_head
        return scores.heads[layer][head]


class ModelAnalysis(_Result):
    """All numbers of one model: a translation model on pairs, or another model on texts."""

    format: Literal["relakit analysis"] = "relakit analysis"
    version: Literal[1] = 1
    name: str
    """The model's name in tables and figures"""
    settings: AnalysisSettings
    inputs: dict[str, str] = Field(default_factory=dict)
    """What was analyzed, and how it was read and translated, for readers: files, options"""
    pairs: int
    """Sentence pairs, or texts"""
    source_tokens: int
    """Including end-of-sentence tokens; for texts, including all special tokens"""
    target_tokens: int | None = None
    """None for texts, which have no target"""
    kinds: tuple[KindResult, ...]
    """Encoder, decoder, cross; for texts, the only kind that the model has: decoder if causal"""
    shuffled: ShuffledResult | None = None
    """None if there is only one pair"""
    classes: ClassNullRates | None = None
    """None for texts"""
    flops: tuple[FlopCounts, ...] = ()
    bleu: float | None = None
    """BLEU of the model's own translations; None if it did not translate"""
    bleu_signature: str | None = None
    alignment: AlignmentResult | None = None
    """None without gold links"""

    @model_validator(mode="after")
    def _check_kinds(self) -> "ModelAnalysis":
        found = tuple(kind.kind for kind in self.kinds)
        if found != ATTENTION_KINDS and found not in (("encoder",), ("decoder",)):
            raise ValueError(
                f"kinds must be {', '.join(ATTENTION_KINDS)}, or encoder or decoder alone, got "
                f"{', '.join(found)}"
            )
        if found == ATTENTION_KINDS and (self.classes is None or self.target_tokens is None):
            raise ValueError("of a translation model there must be classes and target_tokens")
        return self

    @property
    def is_of_texts(self) -> bool:
        """Whether these numbers are about self-attention over texts."""
        return len(self.kinds) == 1

    @property
    def main(self) -> KindResult:
        """The most important kind: cross-attention, or the only one."""
        return self.kinds[-1]

    def kind(self, kind: AttentionKind) -> KindResult:
        return next(result for result in self.kinds if result.kind == kind)

    def write(self, path: Path) -> None:
        """Write as JSON, whole or not at all."""
        write_whole(path, (self.model_dump_json(indent=1) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> "ModelAnalysis":
        """Read what `write` wrote.

        Raises:
            ValueError: names the file, and says why it is not an analysis.
        """
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except ValidationError as error:
            raise ValueError(f"{path} is not an analysis: {explain_document(error)}") from None


@dataclass(frozen=True)
class SentenceView:
    """All attention of one model on one sentence pair, for inspection."""

    index: int
    """The number of the pair in the test set, from 0"""
    source: str
    target: str
    """The given translation, which the model was forced to write"""
    source_words: tuple[Span, ...]
    target_words: tuple[Span, ...]
    source_token_spans: tuple[Span, ...]
    """Where each token is in `source`, without the end-of-sentence token"""
    target_token_spans: tuple[Span, ...]
    source_token_words: tuple[int, ...]
    """The word of each source token, or `NO_WORD`"""
    target_token_words: tuple[int, ...]
    weights: Mapping[AttentionKind, npt.NDArray[np.float32]]
    """``[layers, heads, queries, keys]``, without padding. With S source tokens and T target
    tokens: encoder ``[S+1, S+1]``, the source and its end; decoder ``[T+1, T+1]``, the begin token
    and the target, 0 above the diagonal; cross ``[T+1, S+1]``: row t belongs to the step that
    predicts target token t (its input is token t-1, or the begin token), the last row to the step
    that predicts the end."""
    gold: GoldAlignment | None = None
    output: str | None = None
    """The model's own translation, if it was made"""
    chrf: float | None = None
    """chrF of `output` against `target`, from 0 to 100"""
    own: "SentenceView | None" = None
    """The same attention with `output` in place of the target; None if there is no output, if it
    equals the target, or if too much attention would have to be kept"""
    loss: float | None = None
    """Cross-entropy of the target in nats per token, including the end of the sentence"""
    target_tags: tuple[str, ...] | None = None
    """The tag of each target word, if given"""


@dataclass(frozen=True)
class AnalyzedModel:
    """A model's numbers, and sentences to inspect: what a report is made from."""

    analysis: ModelAnalysis
    views: Sequence[SentenceView]
    links: SentenceLinks | None = None
    """The links of all pairs, if they were kept"""


def spread(count: int, total: int) -> list[int]:
    """``count`` evenly spread numbers below ``total``; all of them if there are no more."""
    if count >= total:
        return list(range(total))
    # The middle of each of ``count`` equal sections.
    return [(2 * number + 1) * total // (2 * count) for number in range(count)]

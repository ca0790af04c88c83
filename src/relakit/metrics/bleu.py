"""BLEU and chrF of a corpus, computed by sacreBLEU; every score carries its signature."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF


@dataclass(frozen=True)
class CorpusScore:
    """A score of translations against their references, from 0 to 100."""

    name: str
    score: float
    signature: str
    """sacreBLEU's account of how it was computed."""
    sentences: int

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


BLEU_NAME: Final = "BLEU"
CHRF_NAME: Final = "chrF"
TOKENISED_BLEU_NAME: Final = "tokenised BLEU"


def bleu_metric() -> Metric:
    """sacreBLEU with its default settings: mixed case, tokenizer 13a, exponential smoothing."""
    # force: text that happens to look tokenised is no reason for a warning here.
    return BLEU(force=True)


def chrf_metric() -> Metric:
    """chrF2: six character n-grams, no word n-grams."""
    return CHRF()


def tokenised_bleu_metric() -> Metric:
    """What multi-bleu.perl computes on text that sacreBLEU's tokenizer ``intl`` has split.

    That is no smoothing, mixed case. ``intl`` splits off all punctuation and symbols, hyphens too,
    which makes it the nearest of sacreBLEU's tokenizers to the Moses tokenizer with ``-a`` that
    such scores are usually reported with. They are not comparable between tokenizers.
    """
    return BLEU(tokenize="intl", smooth_method="none", force=True)


METRICS: Final = {
    BLEU_NAME: bleu_metric,
    CHRF_NAME: chrf_metric,
    TOKENISED_BLEU_NAME: tokenised_bleu_metric,
}
"""What makes each metric, by its name."""


def bleu_score(hypotheses: Sequence[str], references: Sequence[str]) -> CorpusScore:
    """BLEU with sacreBLEU's default settings."""
    return corpus_score(BLEU_NAME, hypotheses, references)


def chrf_score(hypotheses: Sequence[str], references: Sequence[str]) -> CorpusScore:
    """chrF2 with sacreBLEU's default settings."""
    return corpus_score(CHRF_NAME, hypotheses, references)


def tokenised_bleu_score(hypotheses: Sequence[str], references: Sequence[str]) -> CorpusScore:
    """Case-sensitive BLEU on tokenised text; see `tokenised_bleu_metric`."""
    return corpus_score(TOKENISED_BLEU_NAME, hypotheses, references)


def corpus_score(name: str, hypotheses: Sequence[str], references: Sequence[str]) -> CorpusScore:
    """The score of a metric in METRICS; one reference for each hypothesis."""
    check_counts(hypotheses, references)
    metric = METRICS[name]()
    score = metric.corpus_score(hypotheses, [references])
    return CorpusScore(name, float(score.score), str(metric.get_signature()), len(references))


def check_counts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Raise ValueError where they cannot belong together."""
    if len(hypotheses) != len(references):
        raise ValueError(
            f"there are {len(hypotheses):,} translations and {len(references):,} references; "
            "they must be as many"
        )
    if not references:
        raise ValueError("there are no translations to score")

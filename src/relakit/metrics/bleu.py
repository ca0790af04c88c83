"""BLEU and chrF of a corpus, computed by sacreBLEU; every score carries its signature."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from relakit.metrics.settings import MetricName


@dataclass(frozen=True)
class CorpusScore:
    """A score of translations against their references, from 0 to 100."""

    name: MetricName
    score: float
    signature: str
    """sacreBLEU's account of how it was computed."""
    sentences: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def bleu_metric() -> Metric:
    """sacreBLEU with its default settings: mixed case, tokenizer 13a, exponential smoothing."""
    # force: do not warn about text that happens to look tokenised.
    return BLEU(force=True)


def chrf_metric() -> Metric:
    """chrF2: six character n-grams, no word n-grams."""
    return CHRF()


def tokenised_bleu_metric() -> Metric:
    """What multi-bleu.perl computes on text that sacreBLEU's tokenizer ``intl`` has split.

    That means mixed case and no smoothing. ``intl`` splits off all punctuation and symbols, hyphens
    too: of sacreBLEU's tokenizers it is the nearest to the Moses tokenizer with ``-a``, which such
    scores usually go with. Scores with different tokenizers cannot be compared.
    """
    return BLEU(tokenize="intl", smooth_method="none", force=True)


METRICS: Final[dict[MetricName, Callable[[], Metric]]] = {
    "BLEU": bleu_metric,
    "chrF": chrf_metric,
    "tokenised BLEU": tokenised_bleu_metric,
}
"""What makes each metric."""


def bleu_score(hypotheses: Sequence[str], references: Sequence[str]) -> CorpusScore:
    return corpus_score("BLEU", hypotheses, references)


def corpus_score(
    name: MetricName, hypotheses: Sequence[str], references: Sequence[str]
) -> CorpusScore:
    """The score of a corpus with one reference for each hypothesis."""
    check_counts(hypotheses, references)
    metric = METRICS[name]()
    score = metric.corpus_score(hypotheses, [references])
    return CorpusScore(name, float(score.score), str(metric.get_signature()), len(references))


def check_counts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Raise ValueError unless there is one hypothesis for each reference, and at least one."""
    if len(hypotheses) != len(references):
        raise ValueError(
            f"there are {len(hypotheses):,} translations and {len(references):,} references; "
            "there must be one for each"
        )
    if not references:
        raise ValueError("there are no translations to score")

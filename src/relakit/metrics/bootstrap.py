"""Is one output better than another, or is it chance? Paired bootstrap resampling (Koehn, 2004).

The test set is resampled many times, with replacement, and both outputs are scored on the same
draws. sacreBLEU makes the draws (its seed is 12345, or SACREBLEU_SEED in the environment).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sacrebleu.significance import PairedTest

from relakit.metrics.bleu import check_counts, make_metric
from relakit.metrics.settings import (
    BLEU_TOKENIZER,
    METRICS,
    SAMPLES,
    BleuTokenizer,
    MetricName,
    checked_draws,
)


@dataclass(frozen=True)
class Resampled:
    """The score of one output, and what it might be on other test sets of the same kind."""

    score: float
    """On the test set itself."""
    mean: float
    """Over the draws."""
    interval: float
    """Half the width of the interval that holds 95% of the draws."""


@dataclass(frozen=True)
class Comparison:
    """Two outputs compared by one metric."""

    metric: MetricName
    baseline: Resampled
    system: Resampled
    p_value: float
    """How likely such a difference is if the outputs are equally good."""
    signature: str
    """sacreBLEU's account of how it was computed, including the seed and the number of draws."""

    @property
    def difference(self) -> float:
        """The system's score minus the baseline's; for TER, lower is better."""
        return self.system.score - self.baseline.score

    def to_json(self) -> dict[str, Any]:
        """The fields by name, and the difference."""
        return {**asdict(self), "difference": self.difference}


def paired_bootstrap(
    baseline: Sequence[str],
    system: Sequence[str],
    *references: Sequence[str],
    metrics: Sequence[MetricName] = METRICS,
    tokenizer: BleuTokenizer = BLEU_TOKENIZER,
    samples: int = SAMPLES,
) -> list[Comparison]:
    """Compare two outputs for the same test set by each of the metrics.

    References and tokenizer are as for `corpus_score`.
    """
    check_counts(baseline, *references)
    check_counts(system, *references)
    checked_draws(samples, len(system), metrics)
    compared = []
    for name in metrics:
        # One at a time: sacreBLEU has its own names for metrics, and two may share one.
        test = PairedTest(
            [("baseline", baseline), ("system", system)],
            {name: make_metric(name, tokenizer)},
            references,
            test_type="bs",
            n_samples=samples,
        )
        signatures, results = test()
        (own_name, signature), *_ = signatures.items()
        both: list[Any] = results[own_name]
        first, second = (_resampled(result) for result in both)
        compared.append(Comparison(name, first, second, float(both[1].p_value), str(signature)))
    return compared


def _resampled(result: Any) -> Resampled:
    return Resampled(float(result.score), float(result.mean), float(result.ci))

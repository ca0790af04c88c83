"""Names of metrics and tokenizers, and defaults; does not import sacreBLEU, which loads slowly."""

from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from relakit.known_names import known_name

MetricName: TypeAlias = Literal["BLEU", "chrF", "chrF++", "TER", "tokenised BLEU"]
METRIC_NAMES: Final[tuple[MetricName, ...]] = get_args(MetricName)
METRICS: Final[tuple[MetricName, ...]] = ("BLEU", "chrF", "tokenised BLEU")
"""Computed unless others are asked for."""

BleuTokenizer: TypeAlias = Literal[
    "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none", "flores101", "flores200"
]
"""sacreBLEU's tokenizers; scores with different ones cannot be compared."""
BLEU_TOKENIZERS: Final[tuple[BleuTokenizer, ...]] = get_args(BleuTokenizer)
BLEU_TOKENIZER: Final[BleuTokenizer] = "13a"
_BY_LANGUAGE: Final = MappingProxyType[str, BleuTokenizer](
    {
        "zh": "zh",
        "zho": "zh",
        "ja": "ja-mecab",
        "jpn": "ja-mecab",
        "ko": "ko-mecab",
        "kor": "ko-mecab",
    }
)

SAMPLES: Final = 1000
"""How many times a comparison resamples the test set."""


def known_metric(name: str) -> MetricName:
    """The metric with this name, in any case; a hyphen may stand for the space."""
    spelt = {metric.lower(): metric for metric in METRIC_NAMES}
    return spelt.get(name.lower().replace("-", " ")) or known_name("metric", name, METRIC_NAMES)


def known_tokenizer(name: str) -> BleuTokenizer:
    """The name, checked to be one of BLEU's tokenizers."""
    return known_name("BLEU tokenizer", name, BLEU_TOKENIZERS)


def checked_samples(samples: int) -> int:
    """The number of draws, checked to be at least 1."""
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples:,}")
    return samples


def tokenizer_for(language: str | None) -> BleuTokenizer:
    """The tokenizer that sacreBLEU uses for a language, such as ``de`` or ``zh-CN``."""
    if language is None:
        return BLEU_TOKENIZER
    code = language.lower().replace("_", "-").partition("-")[0]
    return _BY_LANGUAGE.get(code, BLEU_TOKENIZER)

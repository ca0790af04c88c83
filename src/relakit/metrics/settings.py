"""Names of metrics and tokenizers, and defaults; without sacreBLEU, which is slow to load."""

from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from relakit.known_names import known_name

MetricName: TypeAlias = Literal["BLEU", "chrF", "chrF++", "TER", "tokenised BLEU"]
METRIC_NAMES: Final[tuple[MetricName, ...]] = get_args(MetricName)
METRICS: Final[tuple[MetricName, ...]] = ("BLEU", "chrF", "tokenised BLEU")
"""Those that are computed unless others are asked for."""

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
"""Draws of the test set in a comparison."""


def known_metric(name: str) -> MetricName:
    """The metric of this name, whatever its case; a hyphen may stand for the space."""
    spelt = {metric.lower(): metric for metric in METRIC_NAMES}
    return spelt.get(name.lower().replace("-", " ")) or known_name("metric", name, METRIC_NAMES)


def known_tokenizer(name: str) -> BleuTokenizer:
    """The name, if BLEU has such a tokenizer."""
    return known_name("BLEU tokenizer", name, BLEU_TOKENIZERS)


def checked_samples(samples: int) -> int:
    """The number of draws, if there are any."""
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples:,}")
    return samples


def tokenizer_for(language: str | None) -> BleuTokenizer:
    """What sacreBLEU uses for text in this language, such as ``de`` or ``zh-CN``."""
    if language is None:
        return BLEU_TOKENIZER
    code = language.lower().replace("_", "-").partition("-")[0]
    return _BY_LANGUAGE.get(code, BLEU_TOKENIZER)

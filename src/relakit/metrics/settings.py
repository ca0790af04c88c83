"""Names of metrics and tokenizers, and defaults; does not import sacreBLEU, which loads slowly."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from relakit.known_names import known_name
from relakit.limits import check_memory

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
_COUNTS: Final = MappingProxyType[MetricName, int](
    {"BLEU": 10, "chrF": 18, "chrF++": 24, "TER": 2, "tokenised BLEU": 10}
)
"""The numbers that sacreBLEU keeps of a line."""


def known_metric(name: str) -> MetricName:
    """The metric with this name, in any case; a hyphen may stand for the space."""
    spelt = {metric.lower(): metric for metric in METRIC_NAMES}
    return spelt.get(name.lower().replace("-", " ")) or known_name("metric", name, METRIC_NAMES)


def known_tokenizer(name: str) -> BleuTokenizer:
    """The name, checked to be one of BLEU's tokenizers."""
    return known_name("BLEU tokenizer", name, BLEU_TOKENIZERS)


def checked_draws(samples: int, lines: int, metrics: Sequence[MetricName]) -> int:
    """How many times to resample so many lines: at least once, and as often as memory allows."""
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples:,}")
    # Of each line that is drawn, sacreBLEU keeps the number in 8 bytes, and all counts in 4 each.
    # It works on one metric and one output at a time.
    bytes_per_draw = 8 + 4 * max((_COUNTS[name] for name in metrics), default=0)
    check_memory(
        f"comparing {lines:,} lines with {samples:,} samples",
        samples * lines * bytes_per_draw,
        advice="draw fewer samples, or compare fewer lines",
    )
    return samples


def tokenizer_for(language: str | None) -> BleuTokenizer:
    """The tokenizer that sacreBLEU uses for a language, such as ``de`` or ``zh-CN``."""
    if language is None:
        return BLEU_TOKENIZER
    code = language.lower().replace("_", "-").partition("-")[0]
    return _BY_LANGUAGE.get(code, BLEU_TOKENIZER)

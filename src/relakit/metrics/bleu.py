"""BLEU, chrF and TER of a corpus, computed by sacreBLEU; every score carries its signature."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Final

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from relakit.metrics.settings import BLEU_TOKENIZER, BleuTokenizer, MetricName


@dataclass(frozen=True)
class CorpusScore:
    """A score of translations against their references, in percent."""

    name: MetricName
    score: float
    signature: str
    """sacreBLEU's account of how it was computed."""
    sentences: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def bleu_metric(tokenizer: BleuTokenizer) -> Metric:
    """sacreBLEU with its default settings: mixed case, exponential smoothing."""
    # force: do not warn about text that happens to look tokenised.
    return BLEU(tokenize=tokenizer, force=True)


def chrf_metric(_: BleuTokenizer) -> Metric:
    """chrF2: character n-grams up to order 6, no word n-grams."""
    return CHRF()


def chrf_with_words_metric(_: BleuTokenizer) -> Metric:
    """chrF2++: character n-grams up to order 6, plus single words and pairs of words."""
    return CHRF(word_order=2)


def ter_metric(tokenizer: BleuTokenizer) -> Metric:
    """Edits per 100 words of the reference, including moves: 0 is best, and it may exceed 100.

    Words are separated by spaces. For languages without spaces, characters are split first.
    """
    has_no_spaces = tokenizer in ("zh", "ja-mecab")
    return TER(normalized=has_no_spaces, asian_support=has_no_spaces)


def tokenised_bleu_metric(_: BleuTokenizer) -> Metric:
    """What multi-bleu.perl computes on text that sacreBLEU's tokenizer ``intl`` has split.

    That means mixed case and no smoothing. ``intl`` splits off all punctuation and symbols, even
    hyphens: of sacreBLEU's tokenizers it is the closest to the Moses tokenizer with ``-a``, which
    is the usual one for such scores. Scores with different tokenizers cannot be compared.
    """
    return BLEU(tokenize="intl", smooth_method="none", force=True)


_MAKERS: Final = MappingProxyType[MetricName, Callable[[BleuTokenizer], Metric]](
    {
        "BLEU": bleu_metric,
        "chrF": chrf_metric,
        "chrF++": chrf_with_words_metric,
        "TER": ter_metric,
        "tokenised BLEU": tokenised_bleu_metric,
    }
)
_PACKAGES: Final = MappingProxyType(
    {
        "ja-mecab": "sacrebleu[ja]",
        "ko-mecab": "sacrebleu[ko]",
        "flores101": "sentencepiece",
        "flores200": "sentencepiece",
    }
)
"""Packages that tokenizers need besides sacreBLEU."""


def make_metric(name: MetricName, tokenizer: BleuTokenizer = BLEU_TOKENIZER) -> Metric:
    """The metric; raises ValueError if its tokenizer lacks a package or cannot download a file."""
    try:
        return _MAKERS[name](tokenizer)
    except (ImportError, RuntimeError):  # what sacreBLEU raises, with a page of text
        package = _PACKAGES.get(tokenizer)
        if package is None:
            raise
        raise ValueError(
            f"BLEU's tokenizer {tokenizer} needs another package: pip install '{package}'; or "
            "choose another tokenizer, such as char"
        ) from None
    except OSError as error:
        raise ValueError(
            f"BLEU's tokenizer {tokenizer} downloads a file when it is first used, and that "
            f"failed: {error}; try again with a network, or choose another tokenizer"
        ) from None


def bleu_score(hypotheses: Sequence[str], references: Sequence[str]) -> CorpusScore:
    return corpus_score("BLEU", hypotheses, references)


def corpus_score(
    name: MetricName,
    hypotheses: Sequence[str],
    *references: Sequence[str],
    tokenizer: BleuTokenizer = BLEU_TOKENIZER,
) -> CorpusScore:
    """The score of a corpus.

    Args:
        name: the name of the metric.
        hypotheses: the translations.
        *references: one or more lists, each with one reference per hypothesis.
        tokenizer: the tokenizer for BLEU and TER.
    """
    check_counts(hypotheses, *references)
    metric = make_metric(name, tokenizer)
    score = metric.corpus_score(hypotheses, references)
    return CorpusScore(name, float(score.score), str(metric.get_signature()), len(hypotheses))


def check_counts(hypotheses: Sequence[str], *references: Sequence[str]) -> None:
    """Raise ValueError unless there is one hypothesis for each reference, and at least one."""
    if not references:
        raise ValueError("there are no references to compare with")
    for several in references:
        if len(hypotheses) != len(several):
            raise ValueError(
                f"there are {len(hypotheses):,} translations and {len(several):,} references; "
                "there must be one for each"
            )
    if not hypotheses:
        raise ValueError("there are no translations to score")

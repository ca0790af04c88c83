"""Analyze models on a test set: from models and sentence pairs to results."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from relakit.analysis.attention_pass import attention_batches, capture_cross_attention
from relakit.analysis.links import END_WEIGHTS, EndWeight
from relakit.analysis.own_translations import add_translations
from relakit.analysis.pair_batches import EncodedPairs
from relakit.analysis.pair_links import PairLinks
from relakit.analysis.pairs import AnalysisPair, Pairs
from relakit.analysis.results import (
    AlignmentResult,
    AnalysisSettings,
    AnalyzedModel,
    ModelAnalysis,
    SentenceView,
    spread,
)
from relakit.analysis.settings import BATCH_TOKENS, EXPLORED
from relakit.analysis.totals import AlignmentTotals, ModelTotals
from relakit.broken_model import blamed_on
from relakit.data.tokenizer_pair import Tokenizers
from relakit.model import Transformer

if TYPE_CHECKING:
    from relakit.decode.translator import Translator

Stage: TypeAlias = Literal["attention", "translations"]

_TRANSLATED_AT_ONCE: Final = 500
"""How many pairs: fewer than a translator takes by default, so that progress is visible."""


def analyze_models(
    models: "Mapping[str, Translator]",
    pairs: Pairs,
    *,
    settings: AnalysisSettings | None = None,
    end: EndWeight = "ignored",
    inputs: Mapping[str, str] | None = None,
    explored: int = EXPLORED,
    translate: bool = True,
    progress: Callable[[str, Stage, int], None] | None = None,
) -> list[AnalyzedModel]:
    """Analyze each model on the same pairs: `analyze_model`, and BLEU of its translations.

    `relakit.report.write_report` turns the result into a folder of tables, figures and a page.

    Args:
        models: by the name used in tables and figures; `relakit.load` reads one.
        pairs: a list of pairs, or `PairFiles`; read up to three times for each model.
        settings: what the numbers depend on; None for the defaults.
        end: how weight on the source's end-of-sentence token affects alignments.
        inputs: a description of what is analyzed, for readers, such as `PairFiles.description`.
        explored: how many sentences to keep all attention for, spread evenly over the pairs.
        translate: whether the models translate the sources, for BLEU, and for chrF and attention to
            the translations of kept sentences. This takes the most time.
        progress: called with a model's name, the current stage, and the number of finished pairs.

    Raises:
        ValueError: as in `analyze_model`.
    """
    tell = progress or (lambda name, stage, done: None)
    found = []
    for name, translator in models.items():
        tell(name, "attention", 0)
        with blamed_on(translator.name):
            totals = _totals(
                translator.model,
                translator.tokenizers,
                pairs,
                settings=settings,
                end=end,
                keep=spread(explored, len(pairs)),
                keep_links=True,
                progress=partial(tell, name, "attention"),
            )
            analysis = totals.result(name).model_copy(update={"inputs": dict(inputs or {})})
        analyzed = AnalyzedModel(analysis, totals.kept_views(), totals.kept_links())
        if translate:
            tell(name, "translations", 0)
            done = partial(tell, name, "translations")
            analyzed = _with_translations(analyzed, translator, pairs, done)
        found.append(analyzed)
    return found


def _with_translations(
    analyzed: AnalyzedModel, translator: "Translator", pairs: Pairs, progress: Callable[[int], None]
) -> AnalyzedModel:
    from relakit.metrics.bleu import bleu_score  # sacrebleu takes a while to load

    sources, references = zip(*((pair.source, pair.target) for pair in pairs), strict=True)
    outputs = []
    for hypotheses in translator.translate_stream(sources, nbest=1, window=_TRANSLATED_AT_ONCE):
        outputs.append(hypotheses[0].text)
        progress(len(outputs))
    bleu = bleu_score(outputs, list(references))
    return add_translations(analyzed, translator, pairs, outputs, bleu)


def analyze_model(
    model: Transformer,
    tokenizer: Tokenizers,
    pairs: Iterable[AnalysisPair],
    *,
    name: str,
    settings: AnalysisSettings | None = None,
    end: EndWeight = "ignored",
    keep: Collection[int] = (),
    batch_tokens: int = BATCH_TOKENS,
    progress: Callable[[int], None] | None = None,
) -> tuple[ModelAnalysis, list[SentenceView]]:
    """Force-decode sentence pairs, and compute every number described in docs/analysis.md.

    Pairs are read as they are needed; memory grows with the number of kept pairs, not with the
    total.

    Args:
        model: reads the given target while its attention is recorded, without dropout.
        tokenizer: the model's tokenizer.
        pairs: either all of them have tags, or none. Those with gold links are aligned.
        name: the model's name in tables and figures.
        settings: what the numbers depend on; None for the defaults.
        end: how weight on the source's end-of-sentence token affects alignments.
        keep: the pairs, numbered from 0, whose attention to return.
        batch_tokens: how many padded tokens are computed at once; affects the result only through
            rounding.
        progress: called from time to time with the number of finished pairs.

    Returns:
        The numbers, without BLEU, and the kept pairs in order.

    Raises:
        ValueError: model and tokenizer do not belong together, there are no pairs or too few for
            ``keep``, only some pairs have tags, or no gold link is sure.
    """
    totals = _totals(
        model,
        tokenizer,
        pairs,
        settings=settings,
        end=end,
        keep=keep,
        keep_links=False,
        batch_tokens=batch_tokens,
        progress=progress,
    )
    return totals.result(name), totals.kept_views()


def _totals(
    model: Transformer,
    tokenizer: Tokenizers,
    pairs: Iterable[AnalysisPair],
    *,
    settings: AnalysisSettings | None,
    end: EndWeight,
    keep: Collection[int],
    keep_links: bool,
    batch_tokens: int = BATCH_TOKENS,
    progress: Callable[[int], None] | None,
) -> ModelTotals:
    """Everything that `analyze_model` counts."""
    model.config.check_tokenizer(tokenizer)
    kept = frozenset(keep)
    totals = ModelTotals(
        model, tokenizer, settings or AnalysisSettings(), end, kept, keep_links=keep_links
    )
    batches = attention_batches(
        model,
        totals.read(pairs),
        shuffle_seed=totals.settings.shuffle_seed,
        losses=kept,
        batch_tokens=batch_tokens,
    )
    for batch in batches:
        totals.add(batch)
        if progress is not None:
            # A pair is done once its target has also been run with the wrong source.
            progress((totals.pairs + totals.shuffled.pairs) // 2)
    if progress is not None:
        progress(totals.pairs)
    return totals


def evaluate_alignment(
    model: Transformer,
    tokenizer: Tokenizers,
    pairs: Iterable[AnalysisPair],
    *,
    end: EndWeight = "ignored",
    batch_tokens: int = BATCH_TOKENS,
) -> AlignmentResult:
    """The alignment error rate of the cross-attention in each layer and head, normal and shifted.

    Each target word is linked to the source word that it attends to most (`links_of`). Pairs are
    read as they are needed; memory does not grow with their number.

    Args:
        model: reads the given target while its attention is recorded.
        tokenizer: the model's tokenizer.
        pairs: those with gold links are aligned.
        end: how weight on the source's end-of-sentence token affects alignments.
        batch_tokens: how many padded tokens are computed at once; affects the result only through
            rounding.

    Raises:
        ValueError: model and tokenizer do not belong together, or there are no sure links.
    """
    totals = AlignmentTotals(model.config, end)
    _align(model, tokenizer, pairs, [totals], batch_tokens)
    return totals.result()


def count_pair_links(
    model: Transformer,
    tokenizer: Tokenizers,
    pairs: Iterable[AnalysisPair],
    *,
    ends: Sequence[EndWeight] = END_WEIGHTS,
    batch_tokens: int = BATCH_TOKENS,
) -> dict[EndWeight, PairLinks]:
    """What `evaluate_alignment` counts, kept separately for each pair so that it can be resampled.

    One pass covers all of ``ends``. Pass the counts to `bootstrap_alignment` and
    `compare_alignments`. A pair takes a few hundred bytes per layer.

    Args:
        model: reads the given target while its attention is recorded.
        tokenizer: the model's tokenizer.
        pairs: those with gold links are aligned.
        ends: how weight on the source's end-of-sentence token affects alignments: one result each.
        batch_tokens: as in `evaluate_alignment`.

    Raises:
        ValueError: model and tokenizer do not belong together, or there are no sure links.
    """
    totals = {end: AlignmentTotals(model.config, end, keep_pairs=True) for end in ends}
    _align(model, tokenizer, pairs, list(totals.values()), batch_tokens)
    return {end: one.pair_links() for end, one in totals.items()}


def _align(
    model: Transformer,
    tokenizer: Tokenizers,
    pairs: Iterable[AnalysisPair],
    totals: Sequence[AlignmentTotals],
    batch_tokens: int,
) -> None:
    """Add the links of all pairs to every one of the totals."""
    model.config.check_tokenizer(tokenizer)
    encoded = EncodedPairs(tokenizer)
    tokens = encoded.read(pairs)
    for attention in capture_cross_attention(model, tokens, batch_tokens=batch_tokens):
        pair = encoded.take(attention.index)
        for one in totals:
            one.add(attention, pair)

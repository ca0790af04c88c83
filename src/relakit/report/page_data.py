"""What the page knows about the models: numbers and names, without any sentence's weights."""

import json
import math
from collections.abc import Sequence
from typing import Any

from relakit.analysis.aer import AlignmentScore, AttentionScores
from relakit.analysis.attention_weights import SUM_TO_ONE
from relakit.analysis.links import READINGS
from relakit.analysis.results import AlignmentResult, KindResult, ModelAnalysis
from relakit.attention_kinds import ATTENTION_KINDS
from relakit.report.in_words import comparison_in_words, model_in_words
from relakit.report.packing import MOST_TOKENS, SELF
from relakit.report.temperatures import shown_temperature, temperature_note


def page_data(
    analyses: Sequence[ModelAnalysis],
    *,
    title: str,
    clarity: Sequence[list[list[float]] | None],
) -> dict[str, Any]:
    """The page's JSON document without its sentences; its names are those that the scripts use.

    Args:
        analyses: one per model.
        title: the page's title.
        clarity: for each model, the clarity of its cross-attention heads, or of its only heads; see
            `mean_clarity`.
    """
    return {
        "title": title,
        # A model that reads texts has only one kind of attention, causal or not.
        "kinds": [SELF] if analyses[0].is_of_texts else list(ATTENTION_KINDS),
        "mostTokens": MOST_TOKENS,
        "models": [
            {**_model(analysis), "clarity": clear, "inWords": model_in_words(analysis, clear)}
            for analysis, clear in zip(analyses, clarity, strict=True)
        ],
        "comparisons": [comparison_in_words(analyses[0], other) for other in analyses[1:]],
        "diversityTemperatures": temperature_note(analyses),
    }


def json_for_script(document: object) -> str:
    """JSON that is safe inside a <script> element: nothing in it can end the element."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # Half of a surrogate pair, which no file can hold, becomes an escape.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _model(analysis: ModelAnalysis) -> dict[str, Any]:
    return {
        "name": analysis.name,
        "settings": analysis.settings.model_dump(mode="json"),
        "pairs": analysis.pairs,
        "sourceTokens": analysis.source_tokens,
        "targetTokens": analysis.target_tokens,
        "kinds": {
            SELF if analysis.is_of_texts else result.kind: _kind(result)
            for result in analysis.kinds
        },
        "shuffled": analysis.shuffled and analysis.shuffled.model_dump(mode="json"),
        "classes": analysis.classes and analysis.classes.model_dump(mode="json"),
        "flops": [counts.model_dump(mode="json") for counts in analysis.flops],
        "bleu": analysis.bleu,
        "bleuSignature": analysis.bleu_signature,
        "alignment": analysis.alignment and _alignment(analysis.alignment),
        "inputs": analysis.inputs,
    }


def _kind(result: KindResult) -> dict[str, Any]:
    return {
        "attention": result.attention,
        "causal": result.kind == "decoder",
        "queries": result.queries,
        "layers": result.layers,
        "heads": result.heads,
        "sumsToOne": result.attention in SUM_TO_ONE,
        "sparsity": result.sparsity,
        "nullRate": result.null_rate,
        "layerNullRate": result.layer_null_rate,
        "nullVariance": result.null_variance(),
        "firstSink": result.first_sink,
        "endSink": result.end_sink,
        "diversity": result.diversity,
        "temperature": shown_temperature(result),
        "outputRms": result.output_rms,
        "closedGates": result.closed_gates,
    }


def _alignment(result: AlignmentResult) -> dict[str, Any]:
    return {
        "end": result.settings.end,
        "pairs": result.pairs,
        "bestReading": result.best_reading,
        **{reading: _scores(result.scores(reading)) for reading in READINGS},
    }


def _scores(scores: AttentionScores) -> dict[str, Any]:
    return {
        "heads": [[_rate(score) for score in layer] for layer in scores.heads],
        "layers": [_rate(score) for score in scores.layers],
        "bestHead": scores.best_head,
        "bestHeads": scores.best_heads,
        "aol": finite(scores.aol),
        "aoh": finite(scores.aoh),
    }


def _rate(score: AlignmentScore) -> float | None:
    return finite(score.aer)


def finite(value: float) -> float | None:
    """None for NaN, where nothing was counted: JSON and CSV have no NaN."""
    return None if math.isnan(value) else value

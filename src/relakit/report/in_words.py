"""The numbers of an analysis as a paragraph: what comes first in the report.

Every sentence follows from numbers; if one is missing, the paragraph says so.
"""

from collections.abc import Iterator
from statistics import fmean, median
from typing import Final

from relakit.amounts import number_with_noun
from relakit.analysis.results import KindResult, ModelAnalysis, mean_of
from relakit.analysis.tags import BEGIN_CLASS
from relakit.attention_kinds import AttentionKind
from relakit.closed_gates import too_many_closed
from relakit.report.example_choice import is_silent
from relakit.report.head_clarity import clearest_head
from relakit.report.number_words import heads_with, percent, place, places, signed
from relakit.report.text_in_words import text_sentences

FEW_PAIRS: Final = 100
"""BLEU on fewer pairs says little."""
SINK: Final = 0.5
"""A head with this share of its weight on one token has a sink"""
MANY_TIMES: Final = 10
"""An RMS(z) that stands out is this many times the middle layer's"""

_NAMES: Final[dict[AttentionKind, str]] = {
    "encoder": "the encoder's self-attention",
    "decoder": "the decoder's self-attention",
    "cross": "cross-attention",
}


def _name(analysis: ModelAnalysis, kind: KindResult) -> str:
    return "self-attention" if analysis.is_of_texts else _NAMES[kind.kind]


def model_in_words(analysis: ModelAnalysis, clarity: list[list[float]] | None) -> str:
    """What the numbers say about one model.

    Args:
        analysis: the numbers.
        clarity: the clarity of each cross-attention head, or of each head of a model that reads
            texts, see `head_clarity`; None if it is unknown.
    """
    if analysis.is_of_texts:
        sentences = list(text_sentences(analysis, clarity))
    else:
        sentences = [
            _size(analysis),
            _bleu(analysis),
            _sparsity(analysis),
            *_nulls(analysis),
            _alignment(analysis, clarity),
        ]
    findings = list(_findings(analysis))
    return " ".join([*sentences, *(findings or ["Nothing else stands out."])])


def comparison_in_words(first: ModelAnalysis, other: ModelAnalysis) -> str:
    """How another model's numbers differ from the first model's."""
    parts = []
    if first.bleu is not None and other.bleu is not None:
        parts.append(f"{signed(other.bleu - first.bleu, 1)} BLEU")
    numbers = {"sparsity": "sparsity", "null rate": "null_rate"}
    if first.is_of_texts:
        numbers["weight on the first token"] = "first_sink"
    attention = "" if first.is_of_texts else "cross-attention "
    for name, values in numbers.items():
        ours, theirs = (mean_of(getattr(one.main, values)) for one in (first, other))
        if ours is not None and theirs is not None:
            parts.append(f"{signed(100 * (theirs - ours), 1)} points of {attention}{name}")
    if first.alignment is not None and other.alignment is not None:
        ours, theirs = (
            one.best_score(one.best_reading).aer for one in (first.alignment, other.alignment)
        )
        judged = "better" if theirs < ours else "worse" if theirs > ours else "alike"
        parts.append(f"{signed(theirs - ours, 2)} AER of the best head ({judged})")
    return f"{other.name} against {first.name}: {', '.join(parts) or 'nothing to compare'}."


def _size(analysis: ModelAnalysis) -> str:
    encoder, decoder, cross = analysis.kinds
    heads = number_with_noun(cross.heads, "head") + " each"
    names = {kind.kind: kind.attention for kind in analysis.kinds}
    if len(set(names.values())) == 1:
        attention = f"{cross.attention} attention"
    else:
        attention = ", ".join(f"{name} in {_NAMES[kind]}" for kind, name in names.items())
    return (
        f"{analysis.name} has {number_with_noun(encoder.layers, 'encoder layer')} and "
        f"{number_with_noun(decoder.layers, 'decoder layer')} of {heads}, with {attention}."
    )


def _bleu(analysis: ModelAnalysis) -> str:
    pairs = number_with_noun(analysis.pairs, "test sentence")
    if analysis.bleu is None:
        return f"It was analyzed on {pairs}; it did not translate them, so there is no BLEU."
    caution = ", which says little about so few" if analysis.pairs < FEW_PAIRS else ""
    return f"Its translations of {pairs} score {analysis.bleu:.1f} BLEU{caution}."


def _sparsity(analysis: ModelAnalysis) -> str:
    encoder, decoder, cross = (mean_of(kind.sparsity) for kind in analysis.kinds)
    if cross is None:
        return "How sparse its cross-attention is was not counted."
    if not any((encoder, decoder, cross)):
        return "None of its attention weights is exactly 0."
    return (
        f"{percent(cross)} of its cross-attention weights are exactly 0 "
        f"(encoder {percent(encoder)}, decoder {percent(decoder)})."
    )


def _nulls(analysis: ModelAnalysis) -> Iterator[str]:
    """How often cross-attention is null, where most often, and after which words."""
    cross = analysis.kind("cross")
    rate = mean_of(cross.null_rate)
    if rate is None:
        yield "Its null rate was not counted."
        return
    if not rate:
        yield "Every target word attends to something in every cross-attention head."
        return
    most = max(heads_with(cross.null_rate), key=lambda item: item[2])
    yield (
        f"{percent(rate)} of the cross-attention queries attend to nothing, most in "
        f"{place(*most[:2])} ({percent(most[2])})."
    )
    by_class = _class_rates(analysis)
    if len(by_class) > 1:
        low, high = min(by_class, key=by_class.__getitem__), max(by_class, key=by_class.__getitem__)
        yield (
            f"They are most frequent after words of the class “{high}” "
            f"({percent(by_class[high])}) and rarest after “{low}” ({percent(by_class[low])})."
        )


def _class_rates(analysis: ModelAnalysis) -> dict[str, float]:
    """The null rate over all heads by the class of the previous word, without rare classes."""
    classes = analysis.classes
    if classes is None:
        return {}
    rates = {}
    for number, name in enumerate(classes.classes):
        known = [head[number] for layer in classes.null_rate for head in layer]
        values = [value for value in known if value is not None]
        if name != BEGIN_CLASS and classes.is_frequent(number) and values:
            rates[name] = fmean(values)
    return rates


def _alignment(analysis: ModelAnalysis, clarity: list[list[float]] | None) -> str:
    alignment = analysis.alignment
    if alignment is not None:
        reading = alignment.best_reading
        best = place(*alignment.scores(reading).best_head)
        aer = alignment.best_score(reading).aer
        return (
            f"Words are aligned best by {best}, {reading} reading: AER {aer:.2f}, where 0 is "
            "perfect; the head was chosen on these same sentences."
        )
    text = "There are no gold links, so how well it aligns words is not known"
    if clarity is None:
        return f"{text}."
    layer, head = clearest_head(clarity)
    return (
        f"{text}; the head that points most clearly is {place(layer, head)} "
        f"(clarity {clarity[layer][head]:.2f} of 1)."
    )


def _findings(analysis: ModelAnalysis) -> Iterator[str]:
    yield from _shuffled(analysis)
    yield from _silent_heads(analysis)
    yield from _sinks(analysis)
    for kind in analysis.kinds:
        yield from _outputs(kind, _name(analysis, kind))


def _shuffled(analysis: ModelAnalysis) -> Iterator[str]:
    if analysis.is_of_texts or not mean_of(analysis.main.null_rate):
        return
    if analysis.shuffled is None:
        yield "With one pair alone there is no wrong source to compare with."
        return
    gaps = analysis.shuffled.cross_gap
    clear = [layer for layer, gap in enumerate(gaps) if gap.low > 0]
    level = f"{100 * analysis.settings.confidence:g} %"
    if not clear:
        yield f"Wrong sources raise the null rate in no layer by more than chance ({level} level)."
        return
    layer = max(clear, key=lambda layer: gaps[layer].mean)
    gap = gaps[layer]
    yield (
        f"Wrong sources raise the null rate most in layer {layer + 1}, by {100 * gap.mean:.1f} "
        f"points ({level} interval {100 * gap.low:.1f} to {100 * gap.high:.1f})."
    )


def _silent_heads(analysis: ModelAnalysis) -> Iterator[str]:
    silent = [item for item in heads_with(analysis.main.null_rate) if is_silent(item[2])]
    if silent:
        yield f"Nearly always null: {places(silent)}."
    never = [
        f"layer {layer} ({percent(rate)})"
        for layer, rate in enumerate(analysis.main.layer_null_rate, 1)
        if rate is not None and rate >= 0.05
    ]
    if never:
        yield f"Queries that find nothing in any head: {', '.join(never)}."


def _sinks(analysis: ModelAnalysis) -> Iterator[str]:
    for kind in analysis.kinds:
        end = "the last token" if analysis.is_of_texts else "the end of the sentence"
        tables = (("the first token", kind.first_sink), (end, kind.end_sink))
        for token, table in tables:
            sinks = [item for item in heads_with(table or ()) if item[2] >= SINK]
            sinks.sort(key=lambda item: -item[2])
            if sinks:
                yield (
                    f"In {_name(analysis, kind)}, {number_with_noun(len(sinks), 'head')} "
                    f"{'puts' if len(sinks) == 1 else 'put'} at least half of the weight on "
                    f"{token}, a sink: {places(sinks)}."
                )


def _outputs(kind: KindResult, name: str) -> Iterator[str]:
    """What would disturb training: one layer's output far above the others', or closed gates."""
    sizes = {n: size for n, size in enumerate(kind.output_rms or (), 1) if size is not None}
    middle = median(sizes.values()) if sizes else 0.0
    layer = max(sizes, key=sizes.__getitem__, default=0)
    if layer and sizes[layer] > MANY_TIMES * middle:
        yield (
            f"RMS(z) of {name} is {sizes[layer]:.0f} in layer {layer} and "
            f"{middle:.0f} in the middle layer: watch it for instability."
        )
    closed = [
        f"{percent(share)} in layer {layer}"
        for layer, share in enumerate(kind.closed_gates or (), 1)
        if share is not None and too_many_closed(share)
    ]
    if closed:
        yield f"Many closed gates in {name}: {', '.join(closed)}."

"""The sentences about a model that reads texts: what its self-attention does."""

from collections.abc import Iterator

from relakit.amounts import number_with_noun
from relakit.analysis.results import ModelAnalysis, mean_of
from relakit.report.head_clarity import clearest_head
from relakit.report.number_words import heads_with, percent, place
from relakit.report.temperatures import shown_temperature


def text_sentences(analysis: ModelAnalysis, clarity: list[list[float]] | None) -> Iterator[str]:
    """What the numbers say, in the order in which a reader would ask.

    Args:
        analysis: an analysis of texts.
        clarity: the clarity of each head, see `head_clarity`; None if it is unknown.
    """
    yield _size(analysis)
    texts = number_with_noun(analysis.pairs, "text")
    tokens = number_with_noun(analysis.source_tokens, "token")
    yield f"It read {texts} of {tokens}{' in all' if analysis.pairs > 1 else ''}."
    yield _sparsity(analysis)
    yield _nulls(analysis)
    share = mean_of(analysis.main.first_sink)
    if share is not None:
        yield f"On average {percent(share)} of a head's weight lies on the first token."
    yield from _diversity(analysis)
    if clarity is not None:
        layer, head = clearest_head(clarity)
        yield (
            f"The head that points most clearly is {place(layer, head)} "
            f"(clarity {clarity[layer][head]:.2f} of 1)."
        )


def _size(analysis: ModelAnalysis) -> str:
    result = analysis.main
    sight = "itself and those before it" if result.kind == "decoder" else "all tokens"
    return (
        f"{analysis.name} has {number_with_noun(result.layers, 'layer')} of "
        f"{number_with_noun(result.heads, 'head')} each, with {result.attention} attention; a "
        f"token may attend to {sight}."
    )


def _sparsity(analysis: ModelAnalysis) -> str:
    share = mean_of(analysis.main.sparsity)
    if not share:
        return "None of its attention weights is exactly 0."
    return f"{percent(share)} of its attention weights are exactly 0."


def _nulls(analysis: ModelAnalysis) -> str:
    rates = analysis.main.null_rate
    rate = mean_of(rates)
    if not rate:
        return "Every token attends to something in every head."
    layer, head, most = max(heads_with(rates), key=lambda item: item[2])
    return (
        f"{percent(rate)} of the queries attend to nothing, most in {place(layer, head)} "
        f"({percent(most)})."
    )


def _diversity(analysis: ModelAnalysis) -> Iterator[str]:
    temperature = shown_temperature(analysis.main)
    values = analysis.main.diversity.get(temperature, ())
    known = [(value, layer) for layer, value in enumerate(values) if value is not None]
    if len(known) > 1 and analysis.main.heads > 1:
        value, layer = max(known)
        yield (
            f"Heads differ most in layer {layer + 1} (head diversity {value:.2f} nats at "
            f"temperature {temperature})."
        )

"""Texts as a causal and a bidirectional model might read them, with made-up weights."""

from collections.abc import Sequence

import numpy as np

from relakit.analysis.results import AnalysisSettings, KindResult, ModelAnalysis
from relakit.analysis.text_results import TextAnalysis, TextTokens, TextView
from relakit.analysis.word_map import split_words

TEXTS = (
    "The old teacher does not see the small dog.",
    "There was an old tree.",
    "It rains.",
)


def read_text(text: str, *, words: bool = True) -> TextTokens:
    """Words of more than three letters are two tokens; a special token stands in front."""
    found = [text[start:end] for start, end in split_words(text)]
    labels, token_words = ["<s>"], [0]
    for number, word in enumerate(found, 1):
        parts = [word[:3], word[3:]] if len(word) > 3 else [word]
        labels += parts
        token_words += [number] * len(parts)
    if not words:
        return TextTokens(text, tuple(labels))
    return TextTokens(text, tuple(labels), ("<s>", *found), tuple(token_words))


def text_view(
    index: int,
    text: str,
    *,
    sparse: bool = True,
    causal: bool = True,
    window: int | None = None,
    layers: int = 2,
    heads: int = 3,
    words: bool = True,
) -> TextView:
    """The last head of a sparse model attends to nothing in every second row."""
    read = read_text(text, words=words)
    tokens = len(read.labels)
    rows, columns = np.indices((tokens, tokens))
    visible = rows >= columns if causal else np.ones((tokens, tokens), dtype=bool)
    if window is not None:
        visible &= abs(rows - columns) < window
    random = np.random.default_rng([index, sparse, causal])
    scores = random.normal(0, 1, (layers, heads, tokens, tokens))
    if sparse:
        weights = np.maximum(scores, 0) * visible
        weights[:, -1, ::2] = 0
    else:
        raised = np.exp(scores) * visible
        weights = raised / raised.sum(-1, keepdims=True)
    seen = np.stack([visible.argmax(1), tokens - visible[:, ::-1].argmax(1)], 1).astype(np.int32)
    return TextView(index, read, weights.astype(np.float32), np.stack([seen] * layers))


def text_analysis(
    name: str, views: Sequence[TextView], *, sparse: bool = True, causal: bool = True
) -> TextAnalysis:
    """The numbers that follow from the views; diversity and outputs are made up."""
    layers, heads = views[0].weights.shape[:2]
    zeros = np.zeros((layers, heads))
    nulls, first, total, cells, queries = zeros, zeros, zeros, 0, 0
    for view in views:
        columns = np.arange(len(view.tokens))
        visible = (columns >= view.seen[0, :, :1]) & (columns < view.seen[0, :, 1:])
        zeros = zeros + ((view.weights == 0) & visible).sum((-1, -2))
        nulls = nulls + (view.weights == 0).all(-1).sum(-1)
        first, total = first + view.weights[..., 0].sum(-1), total + view.weights.sum((-1, -2))
        cells, queries = cells + int(visible.sum()), queries + len(view.tokens)
    result = KindResult(
        kind="decoder" if causal else "encoder",
        attention="rela-g" if sparse else "softmax",
        queries=queries,
        sparsity=_table(zeros / cells),
        null_rate=_table(nulls / queries),
        layer_null_rate=(0.0,) * layers,
        first_sink=_table(first / total),
        end_sink=None if causal else _table(first / total),
        diversity={"1": tuple(0.2 + 0.1 * layer for layer in range(layers))},
        output_rms=(2.0,) * layers if sparse else None,
        closed_gates=(0.1,) * layers if sparse else None,
    )
    analysis = ModelAnalysis(
        name=name,
        settings=AnalysisSettings(),
        inputs={"texts": "texts.txt"},
        pairs=len(views),
        source_tokens=queries,
        kinds=(result,),
    )
    return TextAnalysis(analysis, tuple(f"layers.{n}" for n in range(layers)), tuple(views))


def _table(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in values.tolist())


def two_models() -> list[TextAnalysis]:
    """A sparse causal one, and a dense one that sees all."""
    sparse = [text_view(index, text) for index, text in enumerate(TEXTS)]
    dense = [text_view(i, text, sparse=False, causal=False) for i, text in enumerate(TEXTS)]
    return [
        text_analysis("ReLA-g", sparse),
        text_analysis("softmax", dense, sparse=False, causal=False),
    ]

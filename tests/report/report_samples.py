"""Analyses and sentences as two models might give them: one sparse (ReLA-g), one dense (softmax).

The sentences are from the generated corpus; the weights are random, around the gold links. The
numbers are computed from the weights with plain NumPy, so that the two agree.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from relakit.analysis.aer import AlignmentScore, AttentionScores, alignment_error_rate
from relakit.analysis.gold import GoldAlignment
from relakit.analysis.links import links_of
from relakit.analysis.results import (
    AlignmentResult,
    AlignmentSettings,
    AnalysisSettings,
    ClassNullRates,
    FlopCounts,
    Interval,
    KindResult,
    ModelAnalysis,
    SentenceView,
    ShuffledResult,
)
from relakit.analysis.word_map import Span, split_words, word_weights, words_of_tokens
from relakit.attention_kinds import AttentionKind
from relakit.data.generated import generate_pairs

Weights = npt.NDArray[np.float32]
KINDS: tuple[AttentionKind, ...] = ("encoder", "decoder", "cross")


def token_spans(words: Sequence[Span], longest: int = 6) -> tuple[Span, ...]:
    """Words of more than ``longest`` characters are two tokens."""
    spans: list[Span] = []
    for start, end in words:
        cut = start + longest if end - start > longest else end
        spans += [(start, cut), (cut, end)] if cut < end else [(start, end)]
    return tuple(spans)


def make_view(
    index: int,
    source: str,
    target: str,
    *,
    sparse: bool,
    layers: int = 3,
    heads: int = 4,
    gold: GoldAlignment | None = None,
) -> SentenceView:
    """A sentence pair with made-up weights."""
    source_words, target_words = split_words(source), split_words(target)
    spans = token_spans(source_words), token_spans(target_words)
    of_words = [
        tuple(words_of_tokens(tokens, words).tolist())
        for tokens, words in zip(spans, (source_words, target_words), strict=True)
    ]
    links = gold.sure if gold else {(w, w) for w in range(len(target_words))}
    sizes: dict[AttentionKind, tuple[int, int]] = {
        "encoder": (len(spans[0]) + 1,) * 2,
        "decoder": (len(spans[1]) + 1,) * 2,
        "cross": (len(spans[1]) + 1, len(spans[0]) + 1),
    }
    random = np.random.default_rng([index, sparse])
    return SentenceView(
        index=index,
        source=source,
        target=target,
        source_words=source_words,
        target_words=target_words,
        source_token_spans=spans[0],
        target_token_spans=spans[1],
        source_token_words=of_words[0],
        target_token_words=of_words[1],
        weights={
            kind: _weights(kind, sizes[kind], (layers, heads), links, of_words, sparse, random)
            for kind in KINDS
        },
        gold=gold,
        output=target,
        chrf=100.0,
        loss=float(random.random()),
    )


def with_output(view: SentenceView, output: str, *, chrf: float, sparse: bool) -> SentenceView:
    """The view of a model that wrote something else, and was made to write that, too."""
    layers, heads = view.weights["cross"].shape[:2]
    own = make_view(view.index, view.source, output, sparse=sparse, layers=layers, heads=heads)
    return replace(view, output=output, chrf=chrf, own=replace(own, output=None, chrf=None))


def _weights(
    kind: AttentionKind,
    size: tuple[int, int],
    shape: tuple[int, int],
    links: frozenset[tuple[int, int]] | set[tuple[int, int]],
    of_words: Sequence[Sequence[int]],
    sparse: bool,
    random: np.random.Generator,
) -> Weights:
    """``[layers, heads, queries, keys]``: scores near the links, or near the diagonal."""
    queries, keys = np.indices(size)
    if kind == "cross":
        near = np.zeros(size)
        for row, word in enumerate(of_words[1]):
            for column, other in enumerate(of_words[0]):
                near[row, column] = (other, word) in links
        near[-1, -1] = 1
    else:
        near = np.exp(-(((queries - keys - 1) / 1.5) ** 2))
    layers, heads = shape
    sharpness = np.linspace(1.5, 4, layers)[:, None, None, None]
    # The later a head, the fewer of its queries attend to anything.
    loss = np.linspace(0.3, 2.6, heads)[None, :, None, None]
    noise = random.normal(0, 0.6, (*shape, *size))
    scores = sharpness * near + noise
    active = random.random((*shape, size[0], 1)) > np.linspace(0, 0.9, heads)[None, :, None, None]
    valid = queries >= keys if kind == "decoder" else np.ones(size, dtype=bool)
    if sparse:
        weights = np.maximum(scores - loss, 0) * valid * (active | (kind == "encoder"))
    else:
        raised = np.exp(scores * 1.2) * valid
        weights = raised / raised.sum(-1, keepdims=True)
    return weights.astype(np.float32)


def sample_views(
    count: int = 8, *, sparse: bool, layers: int = 3, heads: int = 4
) -> list[SentenceView]:
    """Pairs of the generated corpus, with gold links."""
    return [
        make_view(
            index,
            pair.source_text,
            pair.target_text,
            sparse=sparse,
            layers=layers,
            heads=heads,
            gold=GoldAlignment(
                frozenset(link for link in pair.links if sum(link) % 5), frozenset(pair.links)
            ),
        )
        for index, pair in enumerate(generate_pairs(count, seed=7))
    ]


def sample_analysis(
    name: str, views: Sequence[SentenceView], *, sparse: bool, gold: bool = True
) -> ModelAnalysis:
    """The numbers that follow from the views; those of the shuffled test set are made up."""
    kinds = tuple(_kind_result(kind, views, sparse) for kind in KINDS)
    nulls: dict[AttentionKind, tuple[tuple[float | None, ...], ...]] = {
        kind.kind: tuple(
            tuple(None if x is None else min(1.0, x + 0.04) for x in layer)
            for layer in kind.null_rate
        )
        for kind in kinds[1:]
    }
    layers = kinds[2].layers
    return ModelAnalysis(
        name=name,
        settings=AnalysisSettings(),
        pairs=len(views),
        source_tokens=sum(len(view.source_token_spans) + 1 for view in views),
        target_tokens=sum(len(view.target_token_spans) + 1 for view in views),
        kinds=kinds,
        shuffled=ShuffledResult(
            pairs=len(views),
            null_rate=nulls if sparse else {kind.kind: kind.null_rate for kind in kinds[1:]},
            cross_gap=tuple(
                Interval(mean=0.04, low=0.03 - 0.02 * layer, high=0.05 + 0.02 * layer)
                if sparse
                else Interval(mean=0.0, low=0.0, high=0.0)
                for layer in range(layers)
            ),
        ),
        classes=_classes(views),
        flops=tuple(
            FlopCounts(length=n, softmax=24 * n**2 - 8 * n, rela_g=8 * n**2 + 5121 * n)
            for n in (100, 1000)
        ),
        bleu=33.1 if sparse else 28.4,
        bleu_signature="nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",
        alignment=_alignment(views, "rela-g" if sparse else "softmax") if gold else None,
    )


def _kind_result(kind: AttentionKind, views: Sequence[SentenceView], sparse: bool) -> KindResult:
    weights = [view.weights[kind] for view in views]
    zeros, cells, nulls, layer_nulls, queries = 0.0, 0, 0.0, 0.0, 0
    first: npt.NDArray[np.float64] | float = 0.0
    end: npt.NDArray[np.float64] | float = 0.0
    total: npt.NDArray[np.float64] | float = 0.0
    for w in weights:
        size = w.shape[-2:]
        valid = np.tril(np.ones(size, dtype=bool)) if kind == "decoder" else np.ones(size, bool)
        zeros = zeros + ((w == 0) & valid).sum((-1, -2))
        cells += int(valid.sum())
        null_rows = (w == 0).all(-1)
        nulls = nulls + null_rows.sum(-1)
        layer_nulls = layer_nulls + null_rows.all(1).sum(-1)
        queries += size[0]
        first, end = first + w[..., 0].sum(-1), end + w[..., -1].sum(-1)
        total = total + w.sum((-1, -2))
    layers = weights[0].shape[0]
    temperatures = ("1", "0.5", "0.25", "0.1") if sparse else ("1",)
    return KindResult(
        kind=kind,
        attention="rela-g" if sparse else "softmax",
        queries=queries,
        sparsity=_table(zeros / cells),
        null_rate=_table(nulls / queries),
        layer_null_rate=tuple((layer_nulls / queries).tolist()),
        first_sink=_table(_shares(first, total)),
        end_sink=None if kind == "decoder" else _table(_shares(end, total)),
        diversity={
            temperature: tuple(
                0.3 + 0.1 * layer + 0.2 * sparse / (1 + n) for layer in range(layers)
            )
            for n, temperature in enumerate(temperatures)
        },
        output_rms=tuple(2.0 + 300 * sparse / (1 + layer) for layer in range(layers)),
        closed_gates=tuple(0.3 / (1 + layer) for layer in range(layers)) if sparse else None,
    )


def _table(values: npt.NDArray[np.float64]) -> tuple[tuple[float | None, ...], ...]:
    return tuple(
        tuple(None if np.isnan(value) else value for value in row) for row in values.tolist()
    )


def _shares(part: npt.ArrayLike, whole: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """NaN where there is no weight at all."""
    whole = np.asarray(whole, dtype=np.float64)
    return np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)


def _classes(views: Sequence[SentenceView]) -> ClassNullRates:
    """By the word before: start of the sentence, comma, other mark, or word."""
    names = ("word", "mark", "start", "comma")
    layers, heads = views[0].weights["cross"].shape[:2]
    nulls = np.zeros((layers, heads, len(names)))
    counts = np.zeros(len(names), dtype=int)
    for view in views:
        words = [view.target[slice(*view.target_words[w])] for w in view.target_token_words]
        before = [2, *(3 if word == "," else 1 if word in ".?!" else 0 for word in words)]
        null_rows = (view.weights["cross"] == 0).all(-1)
        for row, number in enumerate(before):
            nulls[..., number] += null_rows[..., row]
            counts[number] += 1
    order = np.argsort(-counts, kind="stable")
    rates = nulls / np.maximum(counts, 1)
    return ClassNullRates(
        origin="token classes",
        classes=tuple(names[n] for n in order),
        counts=tuple(int(counts[n]) for n in order),
        null_rate=tuple(
            tuple(
                tuple(float(rates[layer, head, n]) if counts[n] else None for n in order)
                for head in range(heads)
            )
            for layer in range(layers)
        ),
    )


def _alignment(views: Sequence[SentenceView], attention: str) -> AlignmentResult:
    def scores(first: int) -> AttentionScores:
        layers, heads = views[0].weights["cross"].shape[:2]
        table = [
            [_score(views, first, layer, head) for head in [*range(heads), None]]
            for layer in range(layers)
        ]
        return AttentionScores(
            heads=tuple(tuple(row[:-1]) for row in table), layers=tuple(row[-1] for row in table)
        )

    return AlignmentResult(
        settings=AlignmentSettings(),
        attention=attention,
        pairs=len(views),
        normal=scores(0),
        shifted=scores(1),
    )


def _score(
    views: Sequence[SentenceView], first: int, layer: int, head: int | None
) -> AlignmentScore:
    found = [links_of(cross_words(view, layer, head, first)) for view in views]
    golds = [view.gold or GoldAlignment(frozenset()) for view in views]
    return alignment_error_rate(found, [g.sure for g in golds], [g.possible for g in golds])


def cross_words(
    view: SentenceView, layer: int, head: int | None, first: int = 0
) -> npt.NDArray[np.float64]:
    """Cross-attention between words of one head, or the mean of all (None)."""
    weights = view.weights["cross"][layer]
    weights = weights.mean(0) if head is None else weights[head]
    return word_weights(
        weights[first : first + len(view.target_token_words), :-1],
        np.asarray(view.target_token_words),
        np.asarray(view.source_token_words),
        target_count=len(view.target_words),
        source_count=len(view.source_words),
    )


def long_view(index: int, *, sparse: bool, words: int = 120) -> SentenceView:
    """A pair of more than a hundred words, cut from several."""
    pairs = list(generate_pairs(40, seed=3))
    source = " ".join(pair.source_text for pair in pairs).split()[:words]
    target = " ".join(pair.target_text for pair in pairs).split()[:words]
    return make_view(index, " ".join(source), " ".join(target), sparse=sparse)


def with_first_temperature(analysis: ModelAnalysis, first: str) -> ModelAnalysis:
    """The analysis as it is with temperatures that start at a later one."""
    kinds = []
    for kind in analysis.kinds:
        names = list(kind.diversity)
        later = {name: kind.diversity[name] for name in names[names.index(first) :]}
        kinds.append(kind.model_copy(update={"diversity": later}))
    return analysis.model_copy(update={"kinds": tuple(kinds)})

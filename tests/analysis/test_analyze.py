"""The whole analysis of small models, against plain loops over pairs that run one by one."""

import dataclasses
import gc
import statistics
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import slow_numbers
import torch

from relakit.analysis import (
    NO_WORD,
    AnalysisPair,
    AnalysisSettings,
    GoldAlignment,
    analyze_model,
    evaluate_alignment,
    generated_gold_pair,
    token_class,
    words_of_tokens,
)
from relakit.analysis.pair_batches import wrong_sources
from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import BEGIN, END, Tokenizer
from relakit.model import ATTENTION_KINDS, Transformer
from relakit.model.transformer import Attention
from relakit.nn.capture import capture

ModelMaker = Callable[[str], Transformer]
PAIRS = [generated_gold_pair(pair) for pair in generate_pairs(9, split="test")]
NAMES = {
    "encoder": "encoder.layers.{}.attention",
    "decoder": "decoder.layers.{}.attention",
    "cross": "decoder.layers.{}.cross_attention",
}
Sentence = tuple[list[list[list[float]]], list[list[bool]]]


def run_alone(
    model: Transformer, tokenizer: Tokenizer, source: str, target: str
) -> dict[str, list[Sentence]]:
    """Weights and masks of all layers, by kind."""
    sources = torch.tensor([[*tokenizer.encode(source).ids, END]])
    targets = torch.tensor([[BEGIN, *tokenizer.encode(target).ids]])
    with torch.no_grad(), capture(model) as records:
        model(sources, targets)
    found: dict[str, list[Sentence]] = {}
    for kind, name in NAMES.items():
        layers = 1 if kind == "encoder" else 2
        weights = [records[name.format(layer)][0].weights[0].double() for layer in range(layers)]
        rows, keys = weights[0].shape[1:]
        valid = [[kind != "decoder" or key <= row for key in range(keys)] for row in range(rows)]
        found[kind] = [(layer.tolist(), valid) for layer in weights]
    return found


def close(expected: object) -> object:
    return pytest.approx(expected, abs=1e-6)


def added_by_head(
    sentences: list[Sentence], number: Callable[..., slow_numbers.Ratio]
) -> list[float | None]:
    heads = len(sentences[0][0])
    return [
        slow_numbers.added([number(weights[head], valid) for weights, valid in sentences])
        for head in range(heads)
    ]


@pytest.mark.parametrize("attention", ["rela-g", "softmax", "rela-g-leaky"])
def test_every_number_against_loops(
    make_model: ModelMaker, tokenizer: Tokenizer, attention: str
) -> None:
    model = make_model(attention)
    analysis, _ = analyze_model(model, tokenizer, iter(PAIRS), name="m", batch_tokens=60)
    alone = [run_alone(model, tokenizer, pair.source, pair.target) for pair in PAIRS]
    assert (analysis.name, analysis.pairs) == ("m", 9)
    for kind in ATTENTION_KINDS:
        found = analysis.kind(kind)
        assert (found.kind, found.attention, found.heads) == (kind, attention, 3)
        assert found.queries == sum(len(one[kind][0][1]) for one in alone)
        for layer in range(found.layers):
            layers = [one[kind][layer] for one in alone]
            close = lambda x: pytest.approx(x, abs=1e-6)  # noqa: E731
            assert list(found.sparsity[layer]) == close(
                added_by_head(layers, slow_numbers.sparsity)
            )
            assert list(found.null_rate[layer]) == close(added_by_head(layers, slow_numbers.null))
            first = added_by_head(layers, slow_numbers.first_sink)
            assert list(found.first_sink[layer]) == close(first)
            slow = slow_numbers.added([slow_numbers.layer_null(*one) for one in layers])
            assert found.layer_null_rate[layer] == close(slow)
            variance = statistics.pvariance(found.null_rate[layer])
            assert found.null_variance()[layer] == close(variance)
            if kind == "decoder":
                assert found.end_sink is None
            else:
                assert list(found.end_sink[layer]) == close(
                    added_by_head(layers, lambda w, v: slow_numbers.end_sink(w, v, len(v[0]) - 1))
                )
            expected = ["1"] if attention == "softmax" else ["1", "0.5", "0.25", "0.1"]
            assert list(found.diversity) == expected
            for name, values in found.diversity.items():
                temperature = None if attention == "softmax" else float(name)
                slow = [slow_numbers.diversity(*one, temperature) for one in layers]
                assert values[layer] == pytest.approx(slow_numbers.added(slow), abs=2e-6)
    if attention == "softmax":
        assert analysis.kind("cross").sparsity == ((0.0,) * 3,) * 2
    tokens = [[len(tokenizer.encode(t).ids) + 1 for t in (p.source, p.target)] for p in PAIRS]
    assert [analysis.source_tokens, analysis.target_tokens] == [
        sum(column) for column in zip(*tokens, strict=True)
    ]


def values_alone(
    model: Transformer, tokenizer: Tokenizer, pair: AnalysisPair
) -> dict[str, list[np.ndarray]]:
    """The values ``[keys, features]`` of all layers, by kind: half of what projects the keys."""
    sources = torch.tensor([[*tokenizer.encode(pair.source).ids, END]])
    targets = torch.tensor([[BEGIN, *tokenizer.encode(pair.target).ids]])
    seen: dict[str, list[np.ndarray]] = {kind: [] for kind in NAMES}

    def keep(kind: str, rows: torch.Tensor) -> None:
        seen[kind].append(rows[0].chunk(2, dim=-1)[1].double().numpy())

    handles = [
        module.key_value.register_forward_hook(
            lambda _, __, rows, kind=module.kind: keep(kind, rows)
        )
        for module in model.modules()
        if isinstance(module, Attention)
    ]
    with torch.no_grad():
        model(sources, targets)
    for handle in handles:
        handle.remove()
    return seen


@pytest.mark.parametrize("attention", ["rela-g", "softmax", "relu-rms"])
def test_outputs_before_the_norm_against_loops(
    make_model: ModelMaker, tokenizer: Tokenizer, attention: str
) -> None:
    """Weights times values of each pair alone."""
    model = make_model(attention)
    analysis, _ = analyze_model(model, tokenizer, PAIRS, name="m", batch_tokens=60)
    outputs: dict[tuple[str, int], list[list[list[float]]]] = {}
    for pair in PAIRS:
        weights = run_alone(model, tokenizer, pair.source, pair.target)
        for kind, layers in values_alone(model, tokenizer, pair).items():
            for layer, values in enumerate(layers):
                heads = zip(weights[kind][layer][0], np.split(values, 3, axis=1), strict=True)
                z = np.concatenate([np.array(w) @ v for w, v in heads], axis=1)
                outputs.setdefault((kind, layer), []).append(z.tolist())
    shares = []
    for (kind, layer), sentences in outputs.items():
        found = analysis.kind(kind)
        square = slow_numbers.added([slow_numbers.mean_square(z) for z in sentences])
        assert len(found.output_rms) == found.layers
        assert found.output_rms[layer] == pytest.approx(square**0.5, rel=1e-5)
        if attention == "rela-g":
            gate = model.get_submodule(NAMES[kind].format(layer)).norm.gate.tolist()
            slow = slow_numbers.added([slow_numbers.closed_gates(z, gate) for z in sentences])
            assert found.closed_gates[layer] == pytest.approx(slow)
            shares.append(slow)
        else:
            assert found.closed_gates is None
    if attention == "rela-g":
        assert len(shares) == len(outputs)
        assert 0 < max(shares) < 1


def test_shuffled_against_loops(make_model: ModelMaker, tokenizer: Tokenizer) -> None:
    model = make_model("rela-g")
    settings = AnalysisSettings(shuffle_seed=5, confidence=0.9)
    analysis, _ = analyze_model(
        model, tokenizer, PAIRS, name="m", settings=settings, batch_tokens=60
    )
    others = wrong_sources(9, (5, 0))
    own = [run_alone(model, tokenizer, pair.source, pair.target) for pair in PAIRS]
    wrong = [
        run_alone(model, tokenizer, PAIRS[other].source, pair.target)
        for pair, other in zip(PAIRS, others, strict=True)
    ]
    assert analysis.shuffled is not None
    assert analysis.shuffled.pairs == 9
    for layer in range(2):
        for kind in ("decoder", "cross"):
            slow = added_by_head([one[kind][layer] for one in wrong], slow_numbers.null)
            assert list(analysis.shuffled.null_rate[kind][layer]) == pytest.approx(slow, abs=1e-6)
        gaps = []
        for right, false in zip(own, wrong, strict=True):
            rates = []
            for weights, valid in (right["cross"][layer], false["cross"][layer]):
                ratios = [slow_numbers.null(head, valid) for head in weights]
                rates.append(statistics.mean(part / whole for part, whole in ratios))
            gaps.append(rates[1] - rates[0])
        mean, width = statistics.mean(gaps), 1.6448536 * statistics.stdev(gaps) / 3
        found = analysis.shuffled.cross_gap[layer]
        assert [found.mean, found.low, found.high] == pytest.approx(
            [mean, mean - width, mean + width], abs=1e-6
        )


@pytest.mark.parametrize("origin", ["tags", "token classes"])
def test_null_rates_by_class(make_model: ModelMaker, tokenizer: Tokenizer, origin: str) -> None:
    model = make_model("rela-g")
    pairs = PAIRS
    if origin == "token classes":
        pairs = [dataclasses.replace(pair, target_tags=None) for pair in PAIRS]
    analysis, _ = analyze_model(model, tokenizer, pairs, name="m", batch_tokens=60)
    counts: Counter[str] = Counter()
    null: Counter[tuple[str, int, int]] = Counter()
    for pair in pairs:
        cross = run_alone(model, tokenizer, pair.source, pair.target)["cross"]
        words = words_of_tokens(tokenizer.encode(pair.target).spans, pair.target_words).tolist()
        for query in range(len(words) + 1):
            if query == 0:
                name = "<s>"
            elif words[query - 1] == NO_WORD or words[query - 1] in words[query:]:
                continue
            else:
                start, end = pair.target_words[words[query - 1]]
                name = token_class(pair.target[start:end])
                if origin == "tags" and pair.target[start:end] != ",":
                    name = pair.target_tags[words[query - 1]]
            counts[name] += 1
            for layer, (weights, _) in enumerate(cross):
                for head, matrix in enumerate(weights):
                    null[name, layer, head] += not any(matrix[query])
    found = analysis.classes
    assert found.origin == origin
    assert dict(zip(found.classes, found.counts, strict=True)) == counts
    assert list(found.counts) == sorted(found.counts, reverse=True)
    for place, name in enumerate(found.classes):
        for layer in range(2):
            for head in range(3):
                expected = null[name, layer, head] / counts[name]
                assert found.null_rate[layer][head][place] == pytest.approx(expected)


def test_alignment_is_that_of_evaluate_alignment(
    make_model: ModelMaker, tokenizer: Tokenizer
) -> None:
    """Of the pairs that have gold links."""
    model = make_model("rela-g")
    some = [
        dataclasses.replace(pair, gold=pair.gold if n % 2 else None) for n, pair in enumerate(PAIRS)
    ]
    analysis, _ = analyze_model(model, tokenizer, some, name="m", end="competes")
    assert analysis.alignment == evaluate_alignment(model, tokenizer, PAIRS[1::2], end="competes")
    none = [AnalysisPair.from_texts(pair.source, pair.target) for pair in PAIRS]
    assert analyze_model(model, tokenizer, none, name="m")[0].alignment is None


@pytest.mark.parametrize("attention", ["rela-g", "entmax15"])
def test_batches_make_no_difference(
    make_model: ModelMaker, tokenizer: Tokenizer, attention: str
) -> None:
    model = make_model(attention)

    def numbers(batch_tokens: int) -> list[float]:
        found, _ = analyze_model(model, tokenizer, PAIRS, name="m", batch_tokens=batch_tokens)
        return list(leaves(found.model_dump()))

    assert numbers(1) == pytest.approx(numbers(100_000), abs=1e-6)


def leaves(value: object) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, int | float):
        yield float(value)


def test_kept_sentences(make_model: ModelMaker, tokenizer: Tokenizer) -> None:
    model = make_model("rela-g")
    _, views = analyze_model(model, tokenizer, PAIRS, name="m", keep=[7, 0, 4], batch_tokens=60)
    assert [view.index for view in views] == [0, 4, 7]
    for view in views:
        pair = PAIRS[view.index]
        source, target = tokenizer.encode(pair.source), tokenizer.encode(pair.target)
        assert (view.source, view.target, view.gold) == (pair.source, pair.target, pair.gold)
        assert view.target_tags == pair.target_tags
        assert (view.source_words, view.target_words) == (pair.source_words, pair.target_words)
        assert list(view.source_token_spans) == source.spans
        assert list(view.target_token_spans) == target.spans
        expected = words_of_tokens(target.spans, pair.target_words).tolist()
        assert list(view.target_token_words) == expected
        alone = run_alone(model, tokenizer, pair.source, pair.target)
        for kind in ATTENTION_KINDS:
            weights = np.array([layer for layer, _ in alone[kind]])
            assert view.weights[kind].dtype == np.float32
            assert view.weights[kind].base is None, "it would keep its whole batch"
            np.testing.assert_allclose(view.weights[kind], weights, rtol=1e-4, atol=1e-5)


def test_one_pair_and_empty_sides(make_model: ModelMaker, tokenizer: Tokenizer) -> None:
    """No tokens but the special ones: a single query and key."""
    empty = AnalysisPair.from_texts("", "")
    analysis, _ = analyze_model(make_model("rela-g"), tokenizer, [empty], name="m")
    assert analysis.shuffled is None
    assert analysis.kind("cross").queries == 1
    assert analysis.kind("cross").first_sink == ((None,) * 3,) * 2
    assert analysis.classes.classes == ("<s>",)
    assert [(f.length, f.softmax) for f in analysis.flops][2] == (100, 3 * 3 * 100**2 - 300)


def test_progress_ends_with_all_pairs(make_model: ModelMaker, tokenizer: Tokenizer) -> None:
    done: list[int] = []
    analyze_model(
        make_model("rela-g"), tokenizer, PAIRS, name="m", batch_tokens=60, progress=done.append
    )
    assert done == sorted(done)
    assert len(set(done)) > 3
    assert done[-1] == 9


def test_what_cannot_be_analyzed(make_model: ModelMaker, tokenizer: Tokenizer) -> None:
    model = make_model("rela-g")
    with pytest.raises(ValueError, match="there are no pairs to analyze"):
        analyze_model(model, tokenizer, [], name="m")
    with pytest.raises(ValueError, match=r"keep must be from 0 to 8, .* 9 pairs, got 2 to 9"):
        analyze_model(model, tokenizer, PAIRS, name="m", keep=[9, 2])
    mixed = [PAIRS[0], dataclasses.replace(PAIRS[1], target_tags=None)]
    with pytest.raises(ValueError, match="pair 2 has no tags, those before have some"):
        analyze_model(model, tokenizer, mixed, name="m")
    no_links = [dataclasses.replace(PAIRS[0], gold=GoldAlignment(frozenset()))]
    with pytest.raises(ValueError, match="the 1 pairs have no sure link"):
        analyze_model(model, tokenizer, no_links, name="m")
    broken = make_model("rela-g")
    broken.decoder.layers[0].cross_attention.query.weight.data[0] = torch.nan
    with pytest.raises(
        ValueError, match="the model computes NaN or infinity: its weights are broken"
    ):
        analyze_model(broken, tokenizer, [AnalysisPair.from_texts("a", "b")], name="m")
    broken = make_model("rela-g")
    broken.decoder.layers[1].cross_attention.key_value.bias.data[-1] = torch.nan  # of a value
    with pytest.raises(ValueError, match="the model computes NaN or infinity"):
        analyze_model(broken, tokenizer, [AnalysisPair.from_texts("a", "b")], name="m")


def test_memory_does_not_grow(
    make_model: ModelMaker, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of a pair is left when its window is over: neither Python objects nor tensors."""
    monkeypatch.setattr("relakit.analysis.pair_batches.WINDOW_TOKENS", 300)
    model = make_model("rela-g")
    memory: list[tuple[int, int]] = []

    def stream(count: int) -> Iterator[AnalysisPair]:
        for number in range(count):
            if number % 50 == 25:
                gc.collect()
                tensors = sum(type(thing) is torch.Tensor for thing in gc.get_objects())
                memory.append((tracemalloc.get_traced_memory()[0], tensors))
            yield PAIRS[number % 9]

    gc.collect()
    gc.freeze()  # what is there already need not be looked through each time
    tracemalloc.start()
    try:
        analyze_model(model, tokenizer, stream(300), name="m")
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    (_, _), *later = memory  # the first is before everything has run once
    sizes, tensors = zip(*later, strict=True)
    assert max(tensors) - min(tensors) < 20
    assert max(sizes) - min(sizes) < 100_000

"""Scores of pairs in batches, against those of pairs that run alone, in plain loops."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from random_models import random_model
from slow_numbers import null

from relakit.analysis import score_pairs, sentence_losses
from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import BEGIN, END, Tokenizer, learn_tokenizer
from relakit.model import Transformer
from relakit.nn.capture import capture

ModelMaker = Callable[[str], Transformer]
TextPair = tuple[str, str]


def text_pairs(count: int) -> list[TextPair]:
    pairs = [(pair.source_text, pair.target_text) for pair in generate_pairs(count, split="test")]
    return [*pairs, ("", "Ein Hund."), ("A dog.", ""), ("", "")]


def check(
    model: Transformer, tokenizer: Tokenizer, pair: TextPair, found: dict[str, object]
) -> None:
    """One pair's scores against the model that has this pair alone."""
    source, target = (tokenizer.encode(text).ids for text in pair)
    with torch.no_grad(), capture(model, ["decoder.layers.*.cross_attention"]) as records:
        states = model(torch.tensor([[*source, END]]), torch.tensor([[BEGIN, *target]]))
        predicted = model.logits(states)[0].double().softmax(-1)
    entropy = [-math.log(predicted[t, token]) for t, token in enumerate([*target, END])]
    assert found["cross_entropy"] == pytest.approx(sum(entropy) / len(entropy), rel=1e-4)
    assert found["queries"] == len(target) + 1
    for layer in range(model.config.decoder_layers):
        weights = records[f"decoder.layers.{layer}.cross_attention"][0].weights[0].double()
        everywhere = [[True] * weights.size(2)] * weights.size(1)
        rates = [part / whole for part, whole in (null(h, everywhere) for h in weights.tolist())]
        assert found["null_rate"][layer].tolist() == pytest.approx(rates)
        if found["mass"] is not None:
            mass = sum(abs(w) for h in weights.tolist() for row in h for w in row)
            mass /= weights.size(0) * weights.size(1)
            assert found["mass"][layer] == pytest.approx(mass, rel=1e-4)


def test_long_sides_are_scored_by_their_beginning() -> None:
    pairs = [("a dog runs", "ein Hund"), ("a dog " * 50_000, "ein Hund " * 50_000)]
    tokenizer = learn_tokenizer(["a dog runs", "ein Hund"] * 9, vocab_size=300)
    model = random_model(vocabulary=tokenizer.size)
    found = score_pairs(model, tokenizer, pairs, max_tokens=6)
    source, target = (tokenizer.encode(text[:99]).ids[:6] for text in pairs[1])
    whole = score_pairs(
        model, tokenizer, [pairs[0], (tokenizer.decode(source), tokenizer.decode(target))]
    )
    assert np.array_equal(found.null_queries, whole.null_queries)
    assert found.cross_entropy[0] == pytest.approx(whole.cross_entropy[0], rel=1e-5)
    # The sentence goes on behind its sixth token, so there is no end to predict.
    with torch.no_grad():
        states = model(torch.tensor([[*source, END]]), torch.tensor([[BEGIN, *target]]))
        predicted = model.logits(states)[0].double().softmax(-1)
    entropy = [-math.log(predicted[t, token]) for t, token in enumerate(target)]
    assert found.cross_entropy[1] == pytest.approx(sum(entropy) / 6, rel=1e-4)


@pytest.mark.parametrize("attention", ["rela-g", "rela-g-leaky", "softmax"])
@pytest.mark.parametrize("batch_tokens", [1, 90, 4096])
def test_against_single_pairs(
    make_model: ModelMaker, tokenizer: Tokenizer, attention: str, batch_tokens: int
) -> None:
    model, pairs = make_model(attention), text_pairs(8)
    scores = score_pairs(model, tokenizer, iter(pairs), batch_tokens=batch_tokens, window=6)
    assert len(scores) == len(pairs)
    assert (scores.mass is None) == (attention == "softmax")
    for number, pair in enumerate(pairs):
        found = {
            "null_rate": scores.null_rate[number],
            "queries": scores.queries[number],
            "cross_entropy": scores.cross_entropy[number],
            "mass": None if scores.mass is None else scores.mass[number],
        }
        check(model, tokenizer, pair, found)
    if attention == "rela-g":
        assert 0 < scores.mean_null_rate.mean() < 1
    np.testing.assert_allclose(scores.layer_null_rate, scores.null_rate.mean(2))
    np.testing.assert_allclose(scores.mean_null_rate, scores.null_rate.mean((1, 2)))


def test_logits_in_parts(
    make_model: ModelMaker, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, pairs = make_model("rela-g"), text_pairs(5)
    whole = score_pairs(model, tokenizer, pairs).cross_entropy
    rows: list[int] = []
    logits = model.logits
    monkeypatch.setattr(model, "logits", lambda x: rows.append(len(x)) or logits(x))
    for most, expected in ((30 * tokenizer.size, 24), (1, 8)):
        rows.clear()
        monkeypatch.setattr(sentence_losses, "LOGITS", most)
        assert np.array_equal(score_pairs(model, tokenizer, pairs).cross_entropy, whole)
        assert max(rows) == expected
        assert min(rows) >= 8, "a product with one row has other last digits"


def test_pairs_are_read_window_by_window(make_model: ModelMaker, tokenizer: Tokenizer) -> None:
    read = 0
    behind: list[int] = []

    def stream() -> Iterator[TextPair]:
        nonlocal read
        for pair in text_pairs(20):
            read += 1
            yield pair

    score_pairs(
        make_model("rela-g"),
        tokenizer,
        stream(),
        window=4,
        progress=lambda done: behind.append(read - done),
    )
    assert read == 23
    assert max(behind) <= 3, "no more than a window waits"
    assert behind[-1] == 0


def test_what_cannot_be_scored(make_model: ModelMaker, tokenizer: Tokenizer) -> None:
    model = make_model("rela-g")
    with pytest.raises(ValueError, match="there are no pairs to score"):
        score_pairs(model, tokenizer, [])
    with pytest.raises(ValueError, match="max_tokens must be at least 1, got 0"):
        score_pairs(model, tokenizer, [("A dog.", "Ein Hund.")], max_tokens=0)
    small = Transformer(model.config.model_copy(update={"vocabulary": 300}))
    with pytest.raises(ValueError, match="tokenizer has 400 entries, the model 300"):
        score_pairs(small, tokenizer, [])
    pairs = [("A dog.", "Ein Hund."), ("A cat.", "Eine Katze.")]
    model.decoder.layers[0].cross_attention.query.weight.data.fill_(math.nan)
    with pytest.raises(ValueError, match="the model computes NaN or infinity in pair 1: its"):
        score_pairs(model, tokenizer, pairs)

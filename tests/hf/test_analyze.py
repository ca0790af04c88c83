"""Numbers about the attention of models of transformers."""

from typing import Any

import numpy as np
import pytest
import torch
from tiny_hf_models import ARCHITECTURES
from tiny_tokenizers import word_tokenizer

import relakit.hf
from relakit.analysis import first_sink_rate, head_diversity, null_rate, sparsity_rate

TEXTS = ["w3 w4 w5 w6 w7", "w9 w10 w11", "w40 w3 w3 w8 w12 w20 w21"]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return word_tokenizer()


@pytest.mark.parametrize(
    ("name", "kind", "layers"),
    [("bert", "encoder", 2), ("albert", "encoder", 2), ("llama", "decoder", 2)],
)
def test_the_numbers_are_those_of_the_weights(
    name: str, kind: str, layers: int, tokenizer: Any
) -> None:
    model = ARCHITECTURES[name].build()
    relakit.hf.convert(model)
    analysis = relakit.hf.analyze(model, tokenizer, TEXTS[:1], keep=[0])
    result = analysis.result
    assert (result.kind, result.attention, result.queries) == (kind, "rela-g", 5)
    assert (result.layers, result.heads, len(analysis.layers)) == (layers, 4, layers)
    (view,) = analysis.views
    assert view.tokens == ("w3", "w4", "w5", "w6", "w7")
    assert view.weights.shape == (layers, 4, 5, 5)
    visible = torch.ones(5, 5, dtype=torch.bool)
    if kind == "decoder":
        visible = visible.tril()
    for layer in range(layers):
        weights = torch.from_numpy(view.weights[layer])
        np.testing.assert_allclose(result.sparsity[layer], sparsity_rate(weights, visible))
        np.testing.assert_allclose(result.null_rate[layer], null_rate(weights, visible))
        expected = first_sink_rate(weights, visible).numpy()
        actual = np.array(result.first_sink[layer], dtype=float)
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
        diversity = head_diversity(weights, visible, 0.5).item()
        assert result.diversity["0.5"][layer] == pytest.approx(diversity, rel=1e-4)
    assert result.output_rms is not None
    assert min(x for x in result.output_rms if x is not None) > 0
    assert result.closed_gates is not None
    assert (result.end_sink is None) == (kind == "decoder")


def test_texts_add_up(tokenizer: Any) -> None:
    model = ARCHITECTURES["gpt2"].build().train()
    relakit.hf.convert(model)
    parts = [relakit.hf.analyze(model, tokenizer, [text]).result for text in TEXTS]
    whole = relakit.hf.analyze(model, tokenizer, TEXTS)
    assert model.training
    assert (whole.texts, whole.result.queries) == (3, 15)
    rates = np.array([part.null_rate for part in parts], dtype=float)
    expected = np.average(rates, axis=0, weights=[part.queries for part in parts])
    np.testing.assert_allclose(np.array(whole.result.null_rate, dtype=float), expected)


def test_softmax_is_dense(tokenizer: Any) -> None:
    model = ARCHITECTURES["distilbert"].build()
    with pytest.raises(ValueError, match=r"relakit.hf.convert\(model, 'softmax'\) makes"):
        relakit.hf.analyze(model, tokenizer, TEXTS)
    relakit.hf.convert(model, "softmax")
    result = relakit.hf.analyze(model, tokenizer, TEXTS).result
    assert result.attention == "softmax"
    assert not np.array(result.sparsity).any()
    assert list(result.diversity) == ["1"]
    assert result.output_rms is None


def test_what_cannot_be_analyzed(tokenizer: Any) -> None:
    model = ARCHITECTURES["bert"].build()
    relakit.hf.convert(model, where="*layer.0.*")
    with pytest.raises(ValueError, match="different kinds of attention"):
        relakit.hf.analyze(model, tokenizer, TEXTS)
    analysis = relakit.hf.analyze(model, tokenizer, TEXTS, where="*layer.0.*")
    assert analysis.layers == ("bert.encoder.layer.0.attention.self",)
    with pytest.raises(ValueError, match="there are no texts"):
        relakit.hf.analyze(model, tokenizer, [], where="*layer.0.*")
    with pytest.raises(ValueError, match="text 2: it has no tokens"):
        relakit.hf.analyze(model, tokenizer, ["w3", ""], where="*layer.0.*")
    with pytest.raises(ValueError, match="text 1: it has 65 tokens, but the model has 64"):
        relakit.hf.analyze(model, tokenizer, ["w3 " * 65], where="*layer.0.*")
    marian = ARCHITECTURES["marian"].build()
    relakit.hf.convert(marian)
    with pytest.raises(ValueError, match="MarianMTModel is an encoder-decoder"):
        relakit.hf.analyze(marian, tokenizer, TEXTS)

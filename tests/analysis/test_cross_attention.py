"""Recorded cross-attention against weights computed by hand, one pair and one step at a time."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from relakit.analysis import capture_cross_attention
from relakit.data.tokenizer import BEGIN, END
from relakit.model import Transformer

ModelMaker = Callable[[str], Transformer]
Pair = tuple[list[int], list[int]]


def random_pairs(sizes: list[tuple[int, int]]) -> list[Pair]:
    random = np.random.default_rng(0)
    return [
        (random.integers(4, 300, s).tolist(), random.integers(4, 300, t).tolist()) for s, t in sizes
    ]


def step_weights(model: Transformer, source: list[int], inputs: list[int]) -> np.ndarray:
    """The last step's weights ``[layers, heads, source + 1]``, from the attentions' inputs."""
    given: list[tuple[Tensor, Tensor]] = []
    hooks = [
        layer.cross_attention.register_forward_pre_hook(
            lambda module, args: given.append((args[0], args[1]))
        )
        for layer in model.decoder.layers
    ]
    with torch.no_grad():
        model(torch.tensor([[*source, END]]), torch.tensor([inputs]))
    for hook in hooks:
        hook.remove()
    found = []
    for layer, (x, memory) in zip(model.decoder.layers, given, strict=True):
        attention = layer.cross_attention
        heads, head = attention.heads, model.config.dim // attention.heads
        query = attention.query(x[:, -1]).view(heads, head).double()
        key = attention.key_value(memory)[0, :, : model.config.dim]
        key = key.view(-1, heads, head).double()
        scores = torch.einsum("hd,shd->hs", query, key) / math.sqrt(head)
        is_softmax = model.config.cross_attention == "softmax"
        found.append(scores.softmax(-1) if is_softmax else scores.relu())
    return torch.stack(found).detach().numpy()


@pytest.mark.parametrize("attention", ["rela-g", "softmax"])
def test_against_growing_prefixes(make_model: ModelMaker, attention: str) -> None:
    model = make_model(attention)
    pairs = random_pairs([(3, 5), (7, 2), (1, 1), (6, 6)])
    seen = set()
    for found in capture_cross_attention(model, pairs):
        source, target = pairs[found.index]
        seen.add(found.index)
        assert found.weights.shape == (2, 3, len(target) + 1, len(source) + 1)
        steps = [
            step_weights(model, source, [BEGIN, *target[:step]]) for step in range(len(target) + 1)
        ]
        expected = np.stack(steps, axis=2)
        np.testing.assert_allclose(found.weights, expected, rtol=1e-4, atol=1e-5)
    assert seen == {0, 1, 2, 3}


def test_null_attention_is_exactly_zero(make_model: ModelMaker) -> None:
    found = list(capture_cross_attention(make_model("rela-g"), random_pairs([(9, 9)] * 4)))
    weights = np.concatenate([f.weights.ravel() for f in found])
    assert 0.2 < (weights == 0).mean() < 0.8


def test_batches_and_windows_make_no_difference(make_model: ModelMaker) -> None:
    model = make_model("rela-g")
    pairs = random_pairs([(n % 7, n % 5) for n in range(23)])  # some sides are empty
    whole = {f.index: f.weights for f in capture_cross_attention(model, pairs)}
    assert sorted(whole) == list(range(23))
    for options in ({"batch_tokens": 1}, {"batch_tokens": 20, "window": 5}, {"window": 1}):
        parts = {f.index: f.weights for f in capture_cross_attention(model, iter(pairs), **options)}
        assert sorted(parts) == list(range(23))
        for index, weights in whole.items():
            np.testing.assert_allclose(parts[index], weights, rtol=1e-4, atol=1e-5)


def test_the_model_is_left_as_it_was(make_model: ModelMaker) -> None:
    """No dropout while recording, and a model in training stays so, between batches too."""
    model = make_model("rela-g")
    pairs = random_pairs([(4, 300), (5, 4)])
    expected = {f.index: f.weights for f in capture_cross_attention(model, pairs)}
    model.train()
    for found in capture_cross_attention(model, pairs, batch_tokens=1):
        assert all(module.training for module in model.modules())
        np.testing.assert_allclose(found.weights, expected[found.index], rtol=1e-4, atol=1e-5)
    # 300 tokens are more than it had positions for: those it made since can be trained with.
    model(torch.tensor([[5, END]]), torch.full((1, 300), 5)).sum().backward()


def test_pairs_are_read_window_by_window(make_model: ModelMaker) -> None:
    read = 0

    def stream() -> Iterator[Pair]:
        nonlocal read
        while True:
            read += 1
            yield [5, 6], [7]

    found = capture_cross_attention(make_model("rela-g"), stream(), window=3)
    assert [next(found).index for _ in range(3)] == [0, 1, 2]
    assert read == 3
    assert next(found).index == 3
    assert read == 6


def test_kept_weights_do_not_keep_their_batch(make_model: ModelMaker) -> None:
    found = next(capture_cross_attention(make_model("rela-g"), random_pairs([(2, 2), (40, 40)])))
    assert found.weights.base is None


def test_bad_arguments(make_model: ModelMaker) -> None:
    with pytest.raises(ValueError, match="batch_tokens must be at least 1, got 0"):
        capture_cross_attention(make_model("rela-g"), [], batch_tokens=0)

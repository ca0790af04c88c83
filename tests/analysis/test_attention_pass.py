"""Recorded attention of batches against that of pairs that run alone and unpadded."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from relakit.analysis import AttentionBatch, attention_batches
from relakit.analysis.pair_batches import wrong_sources
from relakit.data.tokenizer import BEGIN, END
from relakit.model import ATTENTION_KINDS, Transformer
from relakit.nn.capture import capture

ModelMaker = Callable[[str], Transformer]
Pair = tuple[list[int], list[int]]
NAMES = {
    "encoder": "encoder.layers.{}.attention",
    "decoder": "decoder.layers.{}.attention",
    "cross": "decoder.layers.{}.cross_attention",
}


def random_pairs(count: int) -> list[Pair]:
    random = np.random.default_rng(1)
    sizes = random.integers(0, 9, (count, 2))
    return [
        (random.integers(4, 300, s).tolist(), random.integers(4, 300, t).tolist()) for s, t in sizes
    ]


def check(
    model: Transformer, batch: AttentionBatch, place: int, source: list[int], target: list[int]
) -> None:
    """One pair of a batch against the model that has this pair alone."""
    with torch.no_grad(), capture(model) as records:
        model(torch.tensor([[*source, END]]), torch.tensor([[BEGIN, *target]]))
    for kind in batch.layers:
        rows, keys = int(batch.query_sizes(kind)[place]), int(batch.key_sizes(kind)[place])
        valid = batch.valid(kind)[place, 0]
        for layer, found in enumerate(batch.layers[kind]):
            record = records[NAMES[kind].format(layer)][0]
            assert record.weights.shape[2:] == (rows, keys)
            torch.testing.assert_close(
                found[place, :, :rows, :keys], record.weights[0], rtol=1e-4, atol=1e-5
            )
            seen = torch.ones(rows, keys, dtype=torch.bool)
            seen = seen if record.valid is None else record.valid[0, 0]
            assert torch.equal(valid[:rows, :keys], seen)
            assert not valid[rows:].any()
            assert not valid[:, keys:].any()
            assert not found[place, :, :rows, keys:].any()


@pytest.mark.parametrize("attention", ["rela-g", "softmax", "entmax15"])
@pytest.mark.parametrize("batch_tokens", [1, 40, 4096])
def test_against_single_pairs(make_model: ModelMaker, attention: str, batch_tokens: int) -> None:
    model, pairs = make_model(attention), random_pairs(11)
    true, shuffled = [], []
    for batch in attention_batches(
        model, iter(pairs), shuffle_seed=3, batch_tokens=batch_tokens, window=6
    ):
        kinds = ["decoder", "cross"] if batch.is_shuffled else list(ATTENTION_KINDS)
        assert list(batch.layers) == kinds
        for place, index in enumerate(batch.indices):
            source, target = pairs[index]
            if batch.is_shuffled:
                start = index // 6 * 6
                others = wrong_sources(min(6, 11 - start), (3, index // 6))
                other = start + others[index - start]
                source = pairs[other][0]
                assert other != index
            (shuffled if batch.is_shuffled else true).append(index)
            check(model, batch, place, source, target)
    assert sorted(true) == sorted(shuffled) == list(range(11))


def test_losses_of_true_and_wrong_sources(make_model: ModelMaker) -> None:
    model, pairs = make_model("rela-g"), random_pairs(6)
    others = wrong_sources(6, (3, 0))
    seen = []
    for batch in attention_batches(model, pairs, kinds=("cross",), shuffle_seed=3, losses=True):
        for index, loss in zip(batch.indices, batch.losses.tolist(), strict=True):
            source, target = (
                pairs[others[index] if batch.is_shuffled else index][0],
                pairs[index][1],
            )
            with torch.no_grad():
                states = model(torch.tensor([[*source, END]]), torch.tensor([[BEGIN, *target]]))
                log_probabilities = model.logits(states)[0].double().log_softmax(-1)
            steps = enumerate([*target, END])
            expected = -sum(float(log_probabilities[step, token]) for step, token in steps)
            assert loss == pytest.approx(expected, rel=1e-4)
            seen.append((batch.is_shuffled, index))
    assert len(set(seen)) == 12


@pytest.mark.parametrize("attention", ["rela-g", "softmax", "entmax15"])
def test_not_a_bit_depends_on_the_other_pairs(make_model: ModelMaker, attention: str) -> None:
    model, pairs = make_model(attention), random_pairs(24)

    def bits(batch: AttentionBatch, place: int) -> tuple[bytes, ...]:
        found = [batch.losses[place]]
        for kind, layers in batch.layers.items():
            queries, keys = batch.query_sizes(kind)[place], batch.key_sizes(kind)[place]
            found += [layer[place, :, :queries, :keys] for layer in layers]
        return tuple(tensor.contiguous().numpy().tobytes() for tensor in found)

    def found(order: list[int], **options: int) -> dict[int, tuple[bytes, ...]]:
        batches = attention_batches(model, [pairs[i] for i in order], losses=True, **options)
        return {
            order[index]: bits(batch, place)
            for batch in batches
            for place, index in enumerate(batch.indices)
        }

    together = found(list(range(24)))
    assert found(list(range(24)), batch_tokens=1) == together
    assert found(list(reversed(range(24))), window=5, batch_tokens=50) == together
    assert found([7, 7, 7]) == {7: together[7]}


def test_without_losses_there_are_no_logits(
    make_model: ModelMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model("rela-g")
    monkeypatch.delattr(Transformer, "logits")
    assert all(batch.losses is None for batch in attention_batches(model, random_pairs(5)))


def test_the_encoder_runs_once(make_model: ModelMaker) -> None:
    model = make_model("rela-g")
    runs = []
    model.encoder.register_forward_hook(lambda *_: runs.append("encoder"))
    model.decoder.register_forward_hook(lambda *_: runs.append("decoder"))
    batches = list(attention_batches(model, random_pairs(5), shuffle_seed=1))
    true = sum(not batch.is_shuffled for batch in batches)
    assert 0 < true < len(batches)
    assert runs == [*["encoder", "decoder"] * true, *["decoder"] * (len(batches) - true)]


def test_a_window_of_one_pair_is_not_shuffled(make_model: ModelMaker) -> None:
    batches = list(
        attention_batches(make_model("rela-g"), random_pairs(4), shuffle_seed=1, window=3)
    )
    assert sorted(i for b in batches if b.is_shuffled for i in b.indices) == [0, 1, 2]
    assert sorted(i for b in batches if not b.is_shuffled for i in b.indices) == [0, 1, 2, 3]


def test_the_model_is_left_as_it_was(make_model: ModelMaker) -> None:
    model = make_model("rela-g").train()
    first = [
        b.layers["cross"][0] for b in attention_batches(model, random_pairs(6), shuffle_seed=1)
    ]
    assert all(module.training for module in model.modules())
    again = [
        b.layers["cross"][0] for b in attention_batches(model, random_pairs(6), shuffle_seed=1)
    ]
    assert all(torch.equal(x, y) for x, y in zip(first, again, strict=True)), "dropout was on"
    model(torch.tensor([[5, END]]), torch.tensor([[5]])).sum().backward()


def test_pairs_are_read_window_by_window(make_model: ModelMaker) -> None:
    read = 0

    def stream() -> Iterator[Pair]:
        nonlocal read
        while True:
            read += 1
            yield [5, 6], [7]

    batches = attention_batches(make_model("rela-g"), stream(), shuffle_seed=1, window=3)
    assert [next(batches).is_shuffled for _ in range(2)] == [False, True]
    assert read == 3
    assert next(batches).indices == [3, 4, 5]
    assert read == 6


def test_bad_arguments(make_model: ModelMaker) -> None:
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        attention_batches(make_model("rela-g"), [], window=0)


def test_one_layer_alone(make_model: ModelMaker) -> None:
    model, pairs = make_model("rela-g"), random_pairs(7)
    ran: list[int] = []
    for number, layer in enumerate(model.decoder.layers):
        layer.register_forward_hook(lambda *_, number=number: ran.append(number))
    all_layers = list(attention_batches(model, pairs, kinds=("cross",)))
    for number in range(2):
        ran.clear()
        alone = list(attention_batches(model, pairs, kinds=("cross",), cross_layer=number))
        assert set(ran) == set(range(number + 1))
        for one, every in zip(alone, all_layers, strict=True):
            (weights,) = one.layers["cross"]
            assert torch.equal(weights, every.layers["cross"][number])
    ran.clear()
    list(attention_batches(model, pairs, kinds=("cross",), cross_layer=0, losses=True))
    assert set(ran) == {0, 1}
    with pytest.raises(ValueError, match="cross_layer must be from 0 to 1, got 2"):
        attention_batches(model, pairs, cross_layer=2)

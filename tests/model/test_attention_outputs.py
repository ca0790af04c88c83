"""Sizes of attention's outputs and closed gates, against NumPy and the paper's equations."""

import math

import numpy as np
import paper_numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from relakit.data.tokenizer import PAD
from relakit.model import ModelConfig, Transformer
from relakit.model.attention_outputs import (
    LayerOutputs,
    OutputMeter,
    OutputSums,
    output_sums,
)
from relakit.model.transformer import Attention

SOURCE = torch.tensor([[5, 6, 7, 3], [8, 9, 3, PAD]])
TARGET = torch.tensor([[2, 10, 11, 12, 13], [2, 14, 15, PAD, PAD]])


def build(attention: str) -> Transformer:
    """Pre-norm, as with attention of any size no state overflows then."""
    torch.manual_seed(0)
    fields = {
        "vocabulary": 23, "dim": 12, "heads": 3, "encoder_layers": 1, "decoder_layers": 2,
        "feed_forward": 16, "dropout": 0.5, "attention_dropout": 0.5, "norm_first": True,
        **{f"{kind}_attention": attention for kind in ("encoder", "decoder", "cross")},
    }  # fmt: skip
    model = Transformer(ModelConfig.model_validate(fields)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)  # so large that some gates close
    return model


def measure(model: Transformer, source: Tensor = SOURCE, target: Tensor = TARGET) -> OutputMeter:
    meter = OutputMeter(model)
    with torch.no_grad(), meter.watch(source, target):
        model(source, target)
    return meter


def slow_z(model: Transformer, attention: str) -> dict[str, list[np.ndarray]]:
    """By kind and layer, z of all words: the equations in NumPy on what each module is given."""
    found: dict[str, list[np.ndarray]] = {"encoder": [], "decoder": [], "cross": []}
    activation = paper_numpy.TABLE_1[attention]["activation"]

    def compute(module: Attention, args: tuple[Tensor, ...], output: Tensor) -> None:
        x, memory = (tensor.double().numpy() for tensor in args[:2])
        linears = module.query, module.key_value
        parameters = {
            "in_proj_weight": torch.cat([linear.weight for linear in linears]).double().numpy(),
            "in_proj_bias": torch.cat([linear.bias for linear in linears]).double().numpy(),
        }
        is_decoder = module.kind == "decoder"
        z, _ = paper_numpy.concatenated_heads(
            parameters, 3, x, memory, memory,
            attn_mask=~np.tri(x.shape[1], dtype=bool) if is_decoder else None,
            key_padding_mask=None if is_decoder else (SOURCE == PAD).numpy(),
            activation=activation,
        )  # fmt: skip
        words = (SOURCE if module.kind == "encoder" else TARGET) != PAD
        found[module.kind].append(z[words.numpy()])

    handles = [
        module.register_forward_hook(compute)
        for module in model.modules()
        if isinstance(module, Attention)
    ]
    with torch.no_grad():
        model(SOURCE, TARGET)
    for handle in handles:
        handle.remove()
    return found


@pytest.mark.parametrize(
    "attention", ["rela-g", "rela-g-layernorm", "rela-g-gelu", "relu-rms", "relu", "softmax"]
)
def test_a_model_against_the_equations(attention: str) -> None:
    model = build(attention)
    outputs = measure(model).outputs()
    expected = slow_z(model, attention)
    assert {kind: len(layers.rms) for kind, layers in outputs.items()} == {
        "encoder": 1, "decoder": 2, "cross": 2,
    }  # fmt: skip
    norms = {(m.kind, n): m.norm for n, m in _numbered_attentions(model)}
    shares = []
    for kind, layers in outputs.items():
        for layer, z in enumerate(expected[kind]):
            assert layers.rms[layer] == pytest.approx(math.sqrt((z**2).mean()), rel=1e-4)
            if attention.startswith("rela-g"):
                assert layers.closed_gates is not None
                gate = norms[kind, layer].gate.detach().double().numpy()
                share = (1 / (1 + np.exp(-gate * z)) < 0.01).mean()
                assert layers.closed_gates[layer] == pytest.approx(share)
                shares.append(share)
            else:
                assert layers.closed_gates is None
    if attention.startswith("rela-g"):
        assert len(shares) == 5
        assert 0 < max(shares) < 1


def _numbered_attentions(model: Transformer) -> list[tuple[int, Attention]]:
    numbered = [(n, layer.attention) for n, layer in enumerate(model.encoder.layers)]
    for n, layer in enumerate(model.decoder.layers):
        numbered += [(n, layer.attention), (n, layer.cross_attention)]
    return numbered


def test_batches_add_up() -> None:
    """Two sentences together, padded, are the sum of each alone."""
    model = build("rela-g")
    meter = OutputMeter(model)
    with torch.no_grad():
        for source, target in ((SOURCE[:1], TARGET[:1]), (SOURCE[1:, :3], TARGET[1:, :3])):
            with meter.watch(source, target):
                model(source, target)
    for kind, layers in measure(model).sums.items():
        for together, alone in zip(layers, meter.sums[kind], strict=True):
            assert (alone.values, alone.closed) == (together.values, together.closed)
            assert alone.squares == pytest.approx(together.squares, rel=1e-4)


def test_some_kinds_alone() -> None:
    model = build("rela-g")
    meter = OutputMeter(model, ["cross"])
    with torch.no_grad(), meter.watch(SOURCE, TARGET):
        model(SOURCE, TARGET)
    assert list(meter.outputs()) == ["cross"]
    # Up to rounding: the attentions that nobody watches run in one step with their norm.
    found, expected = meter.outputs()["cross"], measure(model).outputs()["cross"]
    assert found.rms == pytest.approx(expected.rms, rel=1e-5)
    assert found.closed_gates == expected.closed_gates


@pytest.mark.parametrize("attention", ["rela-g", "softmax"])
def test_a_model_is_left_as_it_was(attention: str) -> None:
    """The states in the block and afterwards are those of a model that nobody watches."""
    model = build(attention)
    meter = OutputMeter(model)
    with torch.no_grad():
        before = model(SOURCE, TARGET)
        with meter.watch(SOURCE, TARGET):
            watched = model(SOURCE, TARGET)
        sums = {kind: list(layers) for kind, layers in meter.sums.items()}
        after = model(SOURCE, TARGET)
    torch.testing.assert_close(watched, before)
    assert torch.equal(after, before)
    assert meter.sums == sums
    with pytest.raises(RuntimeError, match="stop"), meter.watch(SOURCE, TARGET):
        raise RuntimeError("stop")
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_under_autocast() -> None:
    model = build("rela-g")
    exact = measure(model).outputs()
    with torch.autocast("cpu", torch.bfloat16):
        rounded = measure(model).outputs()
    for kind, layers in exact.items():
        assert rounded[kind].rms == pytest.approx(layers.rms, rel=0.1)
        assert rounded[kind].closed_gates == pytest.approx(layers.closed_gates, abs=0.1)


@given(
    seed=st.integers(0, 2**32 - 1),
    batch=st.integers(1, 3),
    positions=st.integers(1, 5),
    heads=st.integers(1, 3),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e18]),
    heads_apart=st.booleans(),
    gated=st.booleans(),
)
def test_sums_against_numpy(
    seed: int,
    batch: int,
    positions: int,
    heads: int,
    scale: float,
    heads_apart: bool,
    gated: bool,
) -> None:
    random = np.random.default_rng(seed)
    z = (scale * random.normal(size=(batch, positions, 2 * heads))).astype(np.float32)
    gate = random.normal(size=2 * heads).astype(np.float32) if gated else None
    sizes = random.integers(1, positions + 1, size=batch)
    is_word = np.arange(positions) < sizes[:, None]
    z[~is_word] = np.nan  # whatever padding holds, it does not count
    given_z = torch.from_numpy(z)
    if heads_apart:
        # As the kernels leave it: heads before positions in memory.
        given_z = given_z.unflatten(-1, (heads, 2)).transpose(1, 2).contiguous().transpose(1, 2)
    found = output_sums(
        given_z, None if gate is None else torch.from_numpy(gate), torch.from_numpy(is_word)
    )
    rows = z[is_word].astype(np.float64)
    assert found.values == rows.size
    assert found.squares == pytest.approx((rows**2).sum(), rel=1e-5)
    assert found.rms == pytest.approx(math.sqrt((rows**2).mean()), rel=1e-5)
    if gate is None:
        assert found.closed_share is None
    else:
        scores = gate.astype(np.float64) * rows
        closed = paper_numpy.sigmoid(scores) < 0.01
        # Rounding may decide for a gate at the limit.
        unclear = int((np.abs(scores - math.log(0.01 / 0.99)) < 1e-5).sum())
        assert found.closed == pytest.approx(int(closed.sum()), abs=unclear)


def test_sums() -> None:
    assert OutputSums(9.0, 4, 1) + OutputSums(7.0, 4, 2) == OutputSums(16.0, 8, 3)
    assert OutputSums() + OutputSums(16.0, 4) == OutputSums(16.0, 4)
    assert OutputSums() + OutputSums(16.0, 4, 0) == OutputSums(16.0, 4, 0)
    assert math.isnan(OutputSums().rms)
    layers = [OutputSums(16.0, 4, 0), OutputSums(36.0, 4, 1)]
    assert LayerOutputs.from_sums(layers) == LayerOutputs((2.0, 3.0), (0.0, 0.25))
    assert LayerOutputs.from_sums([OutputSums(16.0, 4)]) == LayerOutputs((2.0,), None)


def test_what_is_not_a_number_shows() -> None:
    model = build("relu")
    model.encoder.layers[0].attention.key_value.bias.data[-1] = math.inf
    assert math.isnan(measure(model).outputs()["encoder"].rms[0])  # 0 times infinity is among it

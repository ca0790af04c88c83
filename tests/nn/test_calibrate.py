"""`relakit.calibrate`: norms that bring ReLA's output close to softmax's."""

import copy
import math

import pytest
import torch
from torch import Tensor, nn

import relakit

DIM, HEADS = 16, 4


def encoder(layers: int = 2, **options: object) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    settings = {"dim_feedforward": 32, "dropout": 0.1, "batch_first": True} | options
    layer = nn.TransformerEncoderLayer(DIM, HEADS, **settings)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def batches(count: int = 3, shape: tuple[int, int] = (2, 7)) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(*shape, DIM, generator=generator) for _ in range(count)]


def attention_outputs(module: nn.MultiheadAttention, x: Tensor) -> tuple[Tensor, Tensor]:
    """Of softmax and of ReLU over the same projections: ``[rows, DIM]``, by hand."""
    projected = x @ module.in_proj_weight.T + module.in_proj_bias
    parts = projected.unflatten(-1, (3, HEADS, DIM // HEADS)).permute(2, 0, 3, 1, 4)
    query, key, value = parts
    scores = query @ key.mT / math.sqrt(DIM // HEADS)
    return tuple(
        (weights @ value).transpose(1, 2).reshape(-1, DIM)
        for weights in (scores.softmax(-1), scores.relu())
    )


def least_squares(module: nn.MultiheadAttention, inputs: list[Tensor], factor: float) -> Tensor:
    """Each feature's gain, by torch's solver."""
    outputs = [attention_outputs(module, x) for x in inputs]
    softmax, relu = (torch.cat(several) for several in zip(*outputs, strict=True))
    ours = factor * relu / relu.square().mean(-1, keepdim=True).sqrt()
    return torch.stack(
        [torch.linalg.lstsq(ours[:, [n]], softmax[:, [n]]).solution[0, 0] for n in range(DIM)]
    )


@pytest.mark.parametrize(("attention", "factor"), [("rela-i", 1.0), ("rela-g", 0.5)])
def test_gains_are_least_squares_against_the_model_as_it_was(attention, factor):
    """In the second layer too, whose input is that of the softmax model."""
    model = encoder().eval()
    inputs = batches()
    inputs_of_second: list[Tensor] = []
    with torch.no_grad():
        for x in inputs:
            inputs_of_second.append(model.layers[0](x))
    expected = [
        least_squares(model.layers[0].self_attn, inputs, factor),
        least_squares(model.layers[1].self_attn, inputs_of_second, factor),
    ]
    relakit.convert_attention(model, attention)
    result = relakit.calibrate(model, inputs)
    assert list(result) == ["layers.0.self_attn", "layers.1.self_attn"]
    for layer, gain in zip(model.layers, expected, strict=True):
        torch.testing.assert_close(layer.self_attn.norm.weight, gain, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "attention", ["rela-g", "rela-i", "relu-rms", "rela-g-layernorm", "rela-g-gelu"]
)
def test_the_distance_is_what_a_second_calibration_finds(attention):
    model = encoder().eval()
    relakit.convert_attention(model, attention)
    first = relakit.calibrate(model, batches())
    again = relakit.calibrate(model, batches())
    for name, found in first.items():
        assert found.after < found.before
        assert again[name].before == pytest.approx(found.after, rel=1e-4)
        assert again[name].after == pytest.approx(found.after, rel=1e-4)


def test_the_model_loses_less():
    """Not only each attention by itself."""
    model = encoder(norm_first=True).eval()
    x = batches(1)[0]
    softmax = model(x)
    relakit.convert_attention(model, "rela-i")
    plain = (model(x) - softmax).square().mean()
    relakit.calibrate(model, batches())
    assert (model(x) - softmax).square().mean() < 0.5 * plain


@pytest.mark.parametrize("shape", [(7, 2), (5, 5)], ids=str)
def test_positions_first(shape):
    """Also where batch and positions cannot be told apart by their number."""
    torch.manual_seed(0)
    model = encoder(1, batch_first=False).eval()
    inputs = batches(shape=shape)
    expected = least_squares(model.layers[0].self_attn, [x.transpose(0, 1) for x in inputs], 0.5)
    relakit.convert_attention(model)
    relakit.calibrate(model, inputs)
    gain = model.layers[0].self_attn.norm.weight
    torch.testing.assert_close(gain, expected, rtol=1e-3, atol=1e-4)


def test_batches_are_arguments_in_three_forms():
    source, target = batches(1)[0], batches(2)[1]
    gains = []
    for batch in ((source, target), {"src": source, "tgt": target}):
        torch.manual_seed(0)
        model = nn.Transformer(DIM, HEADS, 1, 1, 32, batch_first=True)
        relakit.convert_attention(model)
        relakit.calibrate(model, [batch])
        gains.append(model.decoder.layers[0].multihead_attn.norm.weight)
    assert torch.equal(*gains)


def test_mode_gradients_and_attention_stay():
    model = encoder().train()
    relakit.convert_attention(model)
    model.layers[0].eval()
    relakit.calibrate(model, batches())
    assert model.training
    assert not model.layers[0].dropout.training
    assert all(p.requires_grad and p.grad is None for p in model.parameters())
    assert not model.layers[0].self_attn.norm._forward_hooks
    model.eval()
    with relakit.capture(model) as records:
        model(batches(1)[0])
    assert (records["layers.0.self_attn"][0].weights == 0).any()


def test_where_leaves_the_others():
    model = encoder().eval()
    relakit.convert_attention(model)
    before = copy.deepcopy(model)
    assert list(relakit.calibrate(model, batches(), where="layers.1.*")) == ["layers.1.self_attn"]
    assert torch.equal(model.layers[0].self_attn.norm.gate, before.layers[0].self_attn.norm.gate)
    assert not torch.equal(
        model.layers[1].self_attn.norm.weight, before.layers[1].self_attn.norm.weight
    )


class OwnAttention(nn.Module):
    """Calls the function, and has a norm of relakit in front of it, too."""

    def __init__(self) -> None:
        super().__init__()
        self.first = relakit.RMSNorm(DIM)
        self.norm = relakit.GatedRMSNorm(DIM)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.first(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        mixed = relakit.attention(heads, heads, heads, is_causal=True)
        return self.norm(mixed.transpose(1, 2).flatten(2))


def test_modules_of_ones_own_and_norms_elsewhere():
    model = nn.Sequential(OwnAttention(), OwnAttention())
    with pytest.warns(
        UserWarning, match=r"no attention was in front of the norm of 0\.first, 1\.f"
    ):
        result = relakit.calibrate(model, batches())
    assert list(result) == ["0.norm", "1.norm"]
    assert torch.equal(model[1].first.weight, torch.ones(DIM))
    assert torch.equal(model[1].norm.gate, torch.zeros(DIM))


class TwoCores(nn.Module):
    """Self-attention, then attention to the block's input: two cores in one module."""

    def __init__(self) -> None:
        super().__init__()
        self.self_core = relakit.AttentionCore(HEADS, DIM // HEADS)
        self.cross_core = relakit.AttentionCore(HEADS, DIM // HEADS)

    def forward(self, x: Tensor) -> Tensor:
        context = x.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        heads = self.self_core(context, context, context)
        queries = heads.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        return self.cross_core(queries, context, context)


class OneCore(TwoCores):
    def __init__(self) -> None:
        super().__init__()
        self.cross_core = self.self_core


def test_two_cores_in_one_module_are_both_calibrated():
    model = nn.Sequential(TwoCores(), OneCore())
    result = relakit.calibrate(model, batches())
    assert list(result) == ["0.self_core", "0.cross_core", "1"]
    for core in (model[0].self_core, model[0].cross_core, model[1].self_core):
        assert not torch.equal(core.norm.weight, torch.ones(DIM))
    assert list(relakit.calibrate(model, batches(), where="0.cross_core")) == ["0.cross_core"]


def test_a_head_that_is_always_null_gets_the_gain_of_the_others():
    model = encoder(1).eval()
    relakit.convert_attention(model, relakit.AttentionSpec(threshold="learned"))
    attention = model.layers[0].self_attn
    with torch.no_grad():
        attention.threshold[0] = 1e6
    relakit.calibrate(model, batches())
    gain = attention.norm.weight
    torch.testing.assert_close(gain[: DIM // HEADS], gain[DIM // HEADS :].mean().expand(4))


def test_where_is_asked_as_in_convert_attention():
    """A function gets the attention module, and a shared one goes by each of its names."""
    model = encoder()
    relakit.convert_attention(model)
    chosen = relakit.calibrate(
        model, batches(), where=lambda name, module: module.num_heads and "1" in name
    )
    assert list(chosen) == ["layers.1.self_attn"]
    model.twin = model.layers[1].self_attn
    assert len(relakit.calibrate(model, batches(), where="twin")) == 1


@pytest.mark.parametrize("compiled", [False, True])
def test_a_function_gets_the_attention_module_and_not_its_core(compiled):
    model = nn.Sequential(OneCore(), TwoCores())
    if compiled:
        model[0] = torch.compile(model[0], backend="eager")
    asked = {}
    relakit.calibrate(model, batches(), where=lambda *of: not asked.update([of]))
    assert {name: type(module) for name, module in asked.items()} == {
        "0": OneCore,
        "1.self_core": relakit.AttentionCore,
        "1.cross_core": relakit.AttentionCore,
    }


@pytest.mark.parametrize(
    ("attention", "inputs", "where", "message"),
    [
        ("softmax", batches(), None, "has no attention with a norm of relakit; convert it first"),
        ("rela-g", [], None, "there are no batches"),
        ("rela-g", batches(), "layer.*", "no attention module is called 'layer.*'"),
        (
            "rela-g",
            batches(),
            lambda name, module: False,
            "where selects none of layers.0.self_attn",
        ),
        ("rela-g", [torch.full((1, 3, DIM), math.nan)], None, "is NaN or infinite"),
    ],
)
def test_errors_change_nothing(attention, inputs, where, message):
    model = encoder()
    relakit.convert_attention(model, attention)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=message):
        relakit.calibrate(model, inputs, where=where)
    assert model.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name

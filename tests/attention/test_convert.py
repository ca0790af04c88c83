"""`relakit.convert_attention` on models that exist."""

import copy

import pytest
import torch
from torch import Tensor, nn

import relakit

EMBED, HEADS, LAYERS = 16, 4, 2
SELF_ATTENTION = [f"encoder.layers.{i}.self_attn" for i in range(LAYERS)]
DECODER = [
    f"decoder.layers.{i}.{name}" for i in range(LAYERS) for name in ("self_attn", "multihead_attn")
]


def build_transformer(**options: object) -> nn.Transformer:
    torch.manual_seed(0)
    settings = {"dim_feedforward": 32, "dropout": 0.0, "batch_first": True} | options
    return nn.Transformer(EMBED, HEADS, LAYERS, LAYERS, **settings)


def batch() -> tuple[Tensor, Tensor, Tensor]:
    """Source, target and the source's padding mask."""
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    return torch.randn(2, 6, EMBED), torch.randn(2, 5, EMBED), padding


def run(model: nn.Transformer, source: Tensor, target: Tensor, padding: Tensor) -> Tensor:
    causal = nn.Transformer.generate_square_subsequent_mask(target.size(1))
    return model(
        source,
        target,
        tgt_mask=causal,
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )


def test_every_attention_of_a_transformer_is_converted() -> None:
    model = build_transformer()
    before = dict(model.named_parameters())
    assert relakit.convert_attention(model) == SELF_ATTENTION + DECODER
    after = dict(model.named_parameters())
    assert all(after[name] is parameter for name, parameter in before.items())
    added = {name.rpartition(".norm.")[2] for name in after.keys() - before.keys()}
    assert added == {"weight", "gate"}
    for name in SELF_ATTENTION + DECODER:
        assert type(model.get_submodule(name)) is relakit.MultiheadAttention
        assert model.get_submodule(name).attention == relakit.ATTENTIONS["rela-g"]


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_conversion_to_softmax_changes_nothing(batch_first: bool, norm_first: bool) -> None:
    model = build_transformer(batch_first=batch_first, norm_first=norm_first)
    converted = copy.deepcopy(model)
    relakit.convert_attention(converted, "softmax")
    source, target, padding = batch()
    if not batch_first:
        source, target = source.transpose(0, 1), target.transpose(0, 1)

    def forward(model: nn.Transformer) -> Tensor:
        length = target.size(1 if batch_first else 0)
        causal = nn.Transformer.generate_square_subsequent_mask(length)
        return model(
            source,
            target,
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )

    output = forward(converted)
    torch.testing.assert_close(output, forward(model))
    model.eval(), converted.eval()
    with torch.no_grad():
        torch.testing.assert_close(forward(converted), forward(model))


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("padded", [True, False])
def test_fused_softmax_path_is_not_taken(activation: str, padded: bool) -> None:
    """In eval mode without gradients PyTorch's encoder layer would bypass the module."""
    model = build_transformer(activation=activation).eval()
    source, _, padding = batch()
    mask = padding if padded else None
    with torch.no_grad():
        softmax = model.encoder(source, src_key_padding_mask=mask)
    relakit.convert_attention(model)
    with_gradients = model.encoder(source, src_key_padding_mask=mask)
    with torch.no_grad():
        without = model.encoder(source, src_key_padding_mask=mask)
    torch.testing.assert_close(without, with_gradients)
    assert not torch.allclose(without[0], softmax[0], atol=1e-3)


def test_fused_path_is_not_taken_after_assignment_by_hand() -> None:
    layer = nn.TransformerEncoderLayer(EMBED, HEADS, 32, batch_first=True).eval()
    layer.self_attn = relakit.MultiheadAttention(EMBED, HEADS, batch_first=True).eval()
    x, _, _ = batch()
    expected = layer(x)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("converted_layer", [0, 1])
def test_one_converted_layer_of_an_encoder(converted_layer: int) -> None:
    """The encoder decides on nested tensors by its first layer alone."""
    model = build_transformer().eval()
    name = SELF_ATTENTION[converted_layer]
    assert relakit.convert_attention(model, where=name) == [name]
    source, _, padding = batch()
    expected = model.encoder(source, src_key_padding_mask=padding)
    with torch.no_grad():
        output = model.encoder(source, src_key_padding_mask=padding)
    torch.testing.assert_close(output[~padding], expected[~padding])


def test_where_takes_patterns_and_functions() -> None:
    def changed(where: object) -> list[str]:
        return relakit.convert_attention(build_transformer(), where=where)

    assert changed("decoder.*") == DECODER
    assert changed(["*.0.self_attn", "*multihead_attn"]) == [
        SELF_ATTENTION[0],
        DECODER[0],
        DECODER[1],
        DECODER[3],
    ]
    assert changed(lambda name, module: "multihead" in name) == [DECODER[1], DECODER[3]]
    assert changed(lambda name, module: False) == []


def test_rows_11_to_13_of_table_1() -> None:
    model = build_transformer()
    relakit.convert_attention(model, "softmax")
    assert relakit.convert_attention(model, "rela-g", where="*multihead_attn") == DECODER[1::2]
    kinds = [model.get_submodule(name).attention.activation for name in SELF_ATTENTION + DECODER]
    assert kinds == ["softmax", "softmax", "softmax", "relu", "softmax", "relu"]


def test_converting_again_replaces_what_was_added() -> None:
    model = build_transformer()
    original = set(model.state_dict())
    relakit.convert_attention(model, relakit.AttentionSpec(threshold="learned"))
    assert "decoder.layers.1.multihead_attn.threshold" in model.state_dict()
    relakit.convert_attention(model, "rela-i")
    added = {name.rpartition("attn.")[2] for name in set(model.state_dict()) - original}
    assert added == {"norm.weight"}
    relakit.convert_attention(model, "softmax")
    assert set(model.state_dict()) == original


@pytest.mark.parametrize("name", relakit.ATTENTIONS)
def test_converted_model_trains_and_round_trips(name: str) -> None:
    model = build_transformer()
    relakit.convert_attention(model, name)
    output = run(model, *batch())
    output.square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    twin = build_transformer()
    relakit.convert_attention(twin, name)
    twin.load_state_dict(model.state_dict(), strict=True)
    data = batch()
    assert torch.equal(run(twin, *data), run(model, *data))


def test_mode_dtype_frozen_parameters_and_hooks_are_kept() -> None:
    model = build_transformer().to(torch.bfloat16).eval()
    attention = model.encoder.layers[0].self_attn
    attention.in_proj_weight.requires_grad_(False)
    calls = []
    handle = attention.register_forward_hook(lambda *_: calls.append(1))
    relakit.convert_attention(model)
    converted = model.encoder.layers[0].self_attn
    assert not converted.training
    assert converted.norm.gate.dtype == torch.bfloat16
    assert not converted.in_proj_weight.requires_grad
    source, _, _ = batch()
    model.encoder(source.bfloat16())
    assert calls == [1]
    handle.remove()
    model.encoder(source.bfloat16())
    assert calls == [1]


def test_shared_modules_stay_shared() -> None:
    shared = nn.MultiheadAttention(EMBED, HEADS)
    model = nn.ModuleDict({"a": shared, "b": shared, "c": nn.MultiheadAttention(EMBED, HEADS)})
    assert relakit.convert_attention(model) == ["a", "b", "c"]
    assert model["a"] is model["b"]
    assert model["a"] is not model["c"]


def test_the_old_module_is_left_alone() -> None:
    old = nn.MultiheadAttention(EMBED, HEADS)
    names = list(old.state_dict())
    new = relakit.MultiheadAttention.from_torch(old, "rela-g")
    assert new.in_proj_weight is old.in_proj_weight
    assert list(old.state_dict()) == names
    x = torch.randn(5, 2, EMBED)
    expected = nn.MultiheadAttention(EMBED, HEADS)
    expected.load_state_dict(old.state_dict())
    assert torch.equal(old(x, x, x)[0], expected(x, x, x)[0])


def test_errors() -> None:
    model = build_transformer()
    with pytest.raises(ValueError, match=r"'decodr\.\*'; the model has encoder\.layers\.0"):
        relakit.convert_attention(model, where="decodr.*")
    with pytest.raises(ValueError, match=r"unknown attention 'relu6'; choose one of softmax"):
        relakit.convert_attention(model, "relu6")
    with pytest.raises(ValueError, match="from_torch"):
        relakit.convert_attention(nn.MultiheadAttention(EMBED, HEADS))

    class Mine(nn.MultiheadAttention):
        def forward(self, *args: object, **kwargs: object) -> object:
            return super().forward(*args, **kwargs)

    with pytest.raises(ValueError, match=r"^1 is a .*Mine, a subclass.*forward of its own"):
        relakit.convert_attention(nn.ModuleList([nn.Linear(2, 2), Mine(EMBED, HEADS)]))
    parametrized = nn.MultiheadAttention(EMBED, HEADS)
    nn.utils.parametrizations.weight_norm(parametrized, "in_proj_weight")
    with pytest.raises(ValueError, match="remove_parametrizations"):
        relakit.convert_attention(nn.ModuleList([parametrized]))
    assert relakit.convert_attention(nn.Linear(2, 2)) == []


def test_nothing_is_converted_when_one_module_cannot_be() -> None:
    class Mine(nn.MultiheadAttention):
        def forward(self, *args: object, **kwargs: object) -> object:
            return super().forward(*args, **kwargs)

    model = nn.ModuleList([nn.MultiheadAttention(EMBED, HEADS), Mine(EMBED, HEADS)])
    with pytest.raises(ValueError, match="Mine"):
        relakit.convert_attention(model)
    assert type(model[0]) is nn.MultiheadAttention

"""`relakit.convert_attention` on models that exist."""

import copy
import io

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
    with pytest.warns(UserWarning, match=r"where selects none .* has encoder\.layers\.0"):
        assert changed(lambda name, module: False) == []


def test_rows_11_to_13_of_table_1() -> None:
    model = build_transformer()
    relakit.convert_attention(model, "softmax")
    assert relakit.convert_attention(model, "rela-g", where="*multihead_attn") == DECODER[1::2]
    kinds = [model.get_submodule(name).attention.activation for name in SELF_ATTENTION + DECODER]
    assert kinds == ["softmax", "softmax", "softmax", "relu", "softmax", "relu"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", relakit.ATTENTIONS)
def test_padding_in_other_precisions(name: str, dtype: torch.dtype) -> None:
    """PyTorch's layers make boolean masks into float masks of the input's dtype."""
    model = build_transformer()
    relakit.convert_attention(model, name)
    model = model.to(dtype)
    source, target, padding = batch()
    output = run(model, source.to(dtype), target.to(dtype), padding)
    assert output.dtype == dtype
    output.float().square().mean().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("mask_dtype", [torch.float16, torch.bfloat16, torch.float32, torch.bool])
@pytest.mark.parametrize("autocast_dtype", [torch.float16, torch.bfloat16])
def test_masks_of_every_dtype_under_autocast(
    mask_dtype: torch.dtype, autocast_dtype: torch.dtype
) -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS, batch_first=True)
    x, _, padding = batch()
    expected, _ = module(x, x, x, key_padding_mask=padding)
    mask = padding
    if mask_dtype != torch.bool:
        mask = torch.zeros(padding.shape, dtype=mask_dtype).masked_fill(padding, -torch.inf)
    with torch.autocast("cpu", autocast_dtype):
        output, _ = module(x, x, x, key_padding_mask=mask)
    torch.testing.assert_close(output.float(), expected, atol=0.03, rtol=0.03)


@pytest.mark.parametrize("layers", [[0], [1], [0, 1]])
def test_layers_of_an_encoder_assigned_by_hand(layers: list[int]) -> None:
    """Nobody told the encoder: in eval mode it hands nested tensors to its layers."""
    encoder = build_transformer().encoder.eval()
    for index in layers:
        layer = encoder.layers[index]
        layer.self_attn = relakit.MultiheadAttention(EMBED, HEADS, batch_first=True).eval()
    source, _, padding = batch()
    expected = encoder(source, src_key_padding_mask=padding)
    with torch.no_grad():
        output = encoder(source, src_key_padding_mask=padding)
    torch.testing.assert_close(output[~padding], expected[~padding])


def test_converting_twice_keeps_what_was_trained() -> None:
    model = build_transformer()
    relakit.convert_attention(model)
    module = model.encoder.layers[0].self_attn
    module.backend = "reference"
    nn.init.constant_(module.norm.gate, 3.0)
    assert relakit.convert_attention(model, "rela-g") == []
    assert model.encoder.layers[0].self_attn is module
    spec = relakit.AttentionSpec(threshold="learned")
    assert relakit.convert_attention(model, spec) == SELF_ATTENTION + DECODER
    converted = model.encoder.layers[0].self_attn
    assert converted.norm.gate is module.norm.gate
    assert converted.backend == "reference"
    nn.init.constant_(converted.threshold, 2.0)
    relakit.convert_attention(model, relakit.AttentionSpec(threshold="learned", power=2.0))
    assert (model.encoder.layers[0].self_attn.threshold == 2.0).all()


def test_a_wrapped_output_projection_is_kept() -> None:
    class Adapted(nn.Module):
        def __init__(self, inner: nn.Linear) -> None:
            super().__init__()
            self.inner, self.adapter = inner, nn.Linear(EMBED, EMBED)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x) + self.adapter(x)

    model = nn.ModuleList([nn.MultiheadAttention(EMBED, HEADS)])
    model[0].out_proj = Adapted(model[0].out_proj)
    assert relakit.convert_attention(model) == ["0"]
    x = torch.randn(5, 2, EMBED)
    model[0](x, x, x)[0].sum().backward()
    assert model[0].out_proj.adapter.weight.grad is not None


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
    assert relakit.convert_attention(model, where="b") == ["a", "b"]
    assert model["a"] is model["b"]
    assert type(model["a"]) is relakit.MultiheadAttention
    assert type(model["c"]) is nn.MultiheadAttention


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
    with pytest.warns(UserWarning, match="no torch.nn.MultiheadAttention in Linear.*none of its"):
        assert relakit.convert_attention(nn.Linear(2, 2)) == []
    with pytest.raises(ValueError, match=r"'encoder' \(did you mean 'encoder\.\*'\?\)"):
        relakit.convert_attention(model, where="encoder")
    with pytest.raises(TypeError, match="where must be None, a pattern, a list"):
        relakit.convert_attention(model, where=3)
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module, got NoneType"):
        relakit.convert_attention(None)
    with pytest.raises(TypeError, match="got Linear"):
        relakit.MultiheadAttention.from_torch(nn.Linear(2, 2))


def test_subclasses_that_would_lose_something_are_refused() -> None:
    class Ours(relakit.MultiheadAttention):
        def forward(self, *args: object, **kwargs: object) -> object:
            return super().forward(*args, **kwargs)

    with pytest.raises(ValueError, match="Ours, a subclass"):
        relakit.convert_attention(nn.ModuleList([Ours(EMBED, HEADS)]), "rela-i")

    class WithNorm(nn.MultiheadAttention):
        def __init__(self) -> None:
            super().__init__(EMBED, HEADS)
            self.norm = nn.LayerNorm(EMBED)

    with pytest.raises(ValueError, match="attribute 'norm' of its own"):
        relakit.convert_attention(nn.ModuleList([WithNorm()]))


def test_nothing_is_converted_when_one_module_cannot_be() -> None:
    class Mine(nn.MultiheadAttention):
        def forward(self, *args: object, **kwargs: object) -> object:
            return super().forward(*args, **kwargs)

    model = nn.ModuleList([nn.MultiheadAttention(EMBED, HEADS), Mine(EMBED, HEADS)])
    with pytest.raises(ValueError, match="Mine"):
        relakit.convert_attention(model)
    assert type(model[0]) is nn.MultiheadAttention


class PackedAttention(nn.Module):
    """Attention as other packages write it."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def test_a_model_without_attention_of_torch_is_named() -> None:
    model = nn.Sequential(*[nn.Sequential(nn.Linear(2, 2), PackedAttention()) for _ in range(3)])
    message = r"nothing was converted; what looks like .*: PackedAttention \(0\.1 and 2 more"
    with pytest.warns(UserWarning, match=message) as caught:
        assert relakit.convert_attention(model) == []
    assert caught[0].filename == __file__  # the line that called, not one of ours


@pytest.mark.filterwarnings("error")
def test_no_warning_where_there_is_nothing_left_to_do() -> None:
    model = build_transformer()
    relakit.convert_attention(model)
    assert relakit.convert_attention(model) == []


def test_outside_code_finds_the_projections() -> None:
    """It asks _qkv_same_embed_dim whether there is one matrix or three."""
    layer = nn.TransformerEncoderLayer(EMBED, HEADS, 32, batch_first=True)
    relakit.convert_attention(layer)
    assert layer.self_attn._qkv_same_embed_dim
    assert layer.self_attn.in_proj_weight.shape == (3 * EMBED, EMBED)
    apart = relakit.MultiheadAttention(EMBED, HEADS, kdim=3)
    assert not apart._qkv_same_embed_dim
    assert apart.k_proj_weight.shape == (EMBED, 3)


def test_fused_path_is_not_taken_by_copies() -> None:
    """Neither by a deep copy nor by a layer that was read from a file."""
    layer = nn.TransformerEncoderLayer(EMBED, HEADS, 32, batch_first=True).eval()
    relakit.convert_attention(layer)
    x, _, _ = batch()
    expected = layer(x)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    for twin in (copy.deepcopy(layer), torch.load(file, weights_only=False)):
        with torch.no_grad():
            torch.testing.assert_close(twin(x), expected)


def test_a_compiled_module_computes_the_new_attention() -> None:
    """`nn.Module.compile` keeps a call of the old one."""
    model = nn.TransformerEncoderLayer(16, 2, batch_first=True).eval()
    model.self_attn.compile(backend="eager")
    relakit.convert_attention(model)
    x = torch.randn(2, 5, 16)
    with relakit.capture(model) as records:
        model(x)
    assert (records["self_attn"][0].weights == 0).any()


def test_a_module_with_a_forward_of_its_own_is_refused() -> None:
    model = nn.TransformerEncoderLayer(16, 2, batch_first=True)
    attention = model.self_attn
    attention.forward = lambda *inputs, **options: attention.__class__.forward(  # type: ignore[method-assign]
        attention, *inputs, **options
    )
    problem = "^self_attn cannot be converted: the MultiheadAttention has got a forward of its own"
    with pytest.raises(ValueError, match=problem):
        relakit.convert_attention(model)
    assert model.self_attn is attention

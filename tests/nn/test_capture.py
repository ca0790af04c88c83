"""`relakit.capture`: weights by module name, whatever ran."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

import relakit

EMBED, HEADS = 16, 4
NAMES = [
    "encoder.layers.0.self_attn",
    "decoder.layers.0.self_attn",
    "decoder.layers.0.multihead_attn",
]


def build_transformer(attention: str | None, dropout: float = 0.0) -> nn.Transformer:
    torch.manual_seed(0)
    model = nn.Transformer(EMBED, HEADS, 1, 1, 32, dropout=dropout, batch_first=True)
    if attention is not None:
        relakit.convert_attention(model, attention)
    return model


def run(model: nn.Module) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    source = torch.randn(2, 6, EMBED, generator=generator)
    target = torch.randn(2, 5, EMBED, generator=generator)
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    return model(
        source,
        target,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(5),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )


@pytest.mark.parametrize("attention", [*relakit.ATTENTIONS, None])
@pytest.mark.parametrize("training", [True, False])
def test_every_attention_is_recorded(attention: str | None, training: bool) -> None:
    model = build_transformer(attention).train(training)
    with torch.set_grad_enabled(training):
        expected = run(model)
        with relakit.capture(model) as records:
            output = run(model)
    torch.testing.assert_close(output, expected)
    assert list(records) == NAMES
    shapes = [(2, HEADS, 6, 6), (2, HEADS, 5, 5), (2, HEADS, 5, 6)]
    for name, shape in zip(NAMES, shapes, strict=True):
        (record,) = records[name]
        assert record.weights.shape == record.valid.shape == shape
        assert not record.weights.requires_grad
        assert (record.weights[~record.valid] == 0).all()
        assert (record.weights[record.valid] != 0).any()
        if attention in (None, "softmax", "sparsemax", "entmax15"):
            torch.testing.assert_close(record.weights.sum(-1), torch.ones(shape[:-1]))
    assert not records[NAMES[0]][0].valid[1, :, :, 4:].any()
    causal = torch.ones(5, 5, dtype=torch.bool).tril().expand(2, HEADS, 5, 5)
    assert torch.equal(records[NAMES[1]][0].valid, causal)


def test_records_equal_the_weights_that_the_module_returns() -> None:
    x = torch.randn(2, 5, EMBED)
    for module in (
        relakit.MultiheadAttention(EMBED, HEADS, batch_first=True),
        nn.MultiheadAttention(EMBED, HEADS, batch_first=True, add_bias_kv=True, add_zero_attn=True),
    ):
        with relakit.capture(module) as records:
            _, weights = module(x, x, x, average_attn_weights=False)
        torch.testing.assert_close(records[""][0].weights, weights)
        assert records[""][0].valid is None


@pytest.mark.parametrize("attention", ["softmax", "rela-g", None])
def test_without_dropout(attention: str | None) -> None:
    model = build_transformer(attention, dropout=0.5)
    model.encoder.layers[0].dropout1.p = 0.0
    with relakit.capture(model.encoder.layers[0].self_attn) as records:
        x = torch.randn(2, 5, EMBED)
        _, dropped = model.encoder.layers[0].self_attn(x, x, x, average_attn_weights=False)
    model.eval()
    _, expected = model.encoder.layers[0].self_attn(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(records[""][0].weights, expected)
    assert not torch.allclose(dropped, expected)


def test_random_numbers_of_the_model_are_left_alone() -> None:
    model = build_transformer("rela-g", dropout=0.5)
    torch.manual_seed(7)
    expected = run(model)
    torch.manual_seed(7)
    with relakit.capture(model):
        assert torch.equal(run(model), expected)


def test_own_modules_that_call_the_function() -> None:
    class Mine(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return relakit.attention(x, x, x, is_causal=True)

    model = nn.Sequential(nn.Linear(EMBED, EMBED), Mine(), Mine())
    x = torch.randn(2, HEADS, 5, EMBED)
    with relakit.capture(model) as records:
        model(x)
        model(x)
        relakit.attention(x, x, x)  # from outside of the model
        nn.Sequential(Mine())(x)  # another model
    assert {name: len(calls) for name, calls in records.items()} == {"1": 2, "2": 2}
    assert records["1"][0].weights.shape == (2, HEADS, 5, 5)


def test_where() -> None:
    model = build_transformer("rela-g")
    with relakit.capture(model, where="*multihead_attn") as records:
        run(model)
    assert list(records) == NAMES[2:]


def test_where_with_a_typing_error() -> None:
    model = build_transformer("rela-g")
    capture = relakit.capture(model, where="*multihead_atn")
    with pytest.raises(ValueError, match=r"'\*multihead_atn'; the model has encoder\.layers"):
        capture.__enter__()
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module"):
        relakit.capture(None).__enter__()


def test_threads_do_not_mix_up_names() -> None:
    model = build_transformer("rela-g").eval()
    other = relakit.MultiheadAttention(EMBED, HEADS)
    x = torch.randn(9, 1, EMBED)

    def work(index: int) -> None:
        run(model)
        other(x, x, x)

    with relakit.capture(model) as records, ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(20)))
    assert {name: len(calls) for name, calls in records.items()} == dict.fromkeys(NAMES, 20)


def test_subclasses_with_a_forward_of_their_own_are_left_alone() -> None:
    class Other(nn.MultiheadAttention):
        def forward(self, x: Tensor, offset: Tensor) -> Tensor:
            x = x + offset
            return super().forward(x, x, x)[0]

    module = Other(EMBED, HEADS)
    x = torch.randn(5, 2, EMBED)
    with (
        pytest.warns(UserWarning, match=r"recorded nothing.*Other \(the model itself\)"),
        relakit.capture(module) as records,
    ):
        assert torch.equal(module(x, x), module(x, x))
    assert records == {}


def test_shared_modules_have_their_first_name() -> None:
    shared = relakit.MultiheadAttention(EMBED, HEADS)
    model = nn.ModuleDict({"a": shared, "b": shared})
    x = torch.randn(5, 2, EMBED)
    for where in (None, "a", "b"):
        with relakit.capture(model, where=where) as records:
            model["b"](x, x, x)
        assert list(records) == ["a"]


def test_compiled_parts_have_their_plain_names() -> None:
    model = build_transformer("rela-g").eval()
    model.encoder = torch.compile(model.encoder, backend="eager")
    with relakit.capture(model) as records:
        run(model)
    assert list(records) == NAMES


def test_compiled_models_are_recorded() -> None:
    model = build_transformer("rela-g").eval()
    compiled = torch.compile(model, backend="eager")  # test_compile.py has the other backends
    expected = run(compiled)
    with relakit.capture(compiled) as records:
        output = run(compiled)
    torch.testing.assert_close(output, expected)
    assert list(records) == NAMES
    torch.testing.assert_close(run(compiled), expected)


def test_half_precision_is_recorded_in_float32() -> None:
    model = build_transformer("rela-g").eval()
    with torch.autocast("cpu", torch.bfloat16), relakit.capture(model) as records:
        run(model)
    assert records[NAMES[0]][0].weights.dtype == torch.float32


def test_nothing_is_left_behind() -> None:
    model = build_transformer(None).eval()
    records = {}

    def fail_in_the_block() -> None:
        nonlocal records
        with relakit.capture(model) as records:
            run(model)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_in_the_block()
    assert list(records) == NAMES
    assert torch.backends.mha.get_fastpath_enabled()
    assert all(not m._forward_hooks and not m._forward_pre_hooks for m in model.modules())
    run(model)
    assert len(records[NAMES[0]]) == 1


def test_a_forward_that_fails_does_not_mix_up_names() -> None:
    model = build_transformer("rela-g")
    with relakit.capture(model) as records:
        with pytest.raises(ValueError, match="features"):
            model.encoder.layers[0].self_attn(*[torch.randn(2, 5, 3)] * 3)
        run(model)
    assert list(records) == NAMES


def test_captures_nest() -> None:
    model = build_transformer("rela-g")
    with relakit.capture(model) as outer, relakit.capture(model.encoder) as inner:
        run(model)
    assert list(outer) == NAMES
    assert list(inner) == ["layers.0.self_attn"]


class PackedAttention(nn.Module):
    """Attention as other packages write it."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def test_a_block_without_a_record_says_why() -> None:
    model = nn.Sequential(nn.Linear(EMBED, EMBED), PackedAttention())
    message = r"in Sequential ran no torch\.nn\.MultiheadAttention.*: PackedAttention \(1\)"
    with pytest.warns(UserWarning, match=message) as caught, relakit.capture(model):
        model(torch.randn(2, EMBED))
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="the model did not run"), relakit.capture(model):
        pass
    transformer = build_transformer("rela-g")
    with (
        pytest.warns(UserWarning, match=r"none ran: decoder\.layers\.0\.self_attn, decoder"),
        relakit.capture(transformer, where="decoder.*"),
    ):
        transformer.encoder(torch.randn(2, 6, EMBED))
    with (
        pytest.warns(UserWarning, match="where selects none"),
        relakit.capture(transformer, where=lambda name, module: False),
    ):
        run(transformer)


@pytest.mark.filterwarnings("error")
def test_an_error_in_the_block_comes_without_a_warning() -> None:
    with pytest.raises(ZeroDivisionError), relakit.capture(build_transformer("rela-g")):
        raise ZeroDivisionError

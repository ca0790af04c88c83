"""What users of `torch.nn.MultiheadAttention` rely on, besides the grid in test_multihead.py.

The table in docs/conversion.md names the differences; each has a test here or there.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import relakit

EMBED, HEADS, BATCH, QUERIES, KEYS = 12, 4, 3, 5, 7


def build_pair(**options: object) -> tuple[nn.MultiheadAttention, relakit.MultiheadAttention]:
    settings = {"batch_first": True} | options
    theirs = nn.MultiheadAttention(EMBED, HEADS, **settings)
    ours = relakit.MultiheadAttention(EMBED, HEADS, attention="softmax", **settings)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def inputs(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    return torch.randn(BATCH, QUERIES, EMBED, dtype=dtype), torch.randn(
        BATCH, KEYS, EMBED, dtype=dtype
    )


@pytest.mark.parametrize("options", [{}, {"kdim": EMBED, "vdim": EMBED}, {"kdim": 6}], ids=str)
def test_outside_code_can_call_torchs_function_with_our_parameters(
    options: dict[str, int],
) -> None:
    """As PyTorch's own tests do, which ask `_qkv_same_embed_dim` where the weights are."""
    _, ours = build_pair(batch_first=False, add_bias_kv=True, **options)
    query = torch.randn(QUERIES, BATCH, EMBED)
    key, value = torch.randn(KEYS, BATCH, ours.kdim), torch.randn(KEYS, BATCH, EMBED)
    weights: dict[str, object] = {"in_proj_weight": ours.in_proj_weight}
    if not ours._qkv_same_embed_dim:
        weights = {
            "in_proj_weight": None,
            "use_separate_proj_weight": True,
            "q_proj_weight": ours.q_proj_weight,
            "k_proj_weight": ours.k_proj_weight,
            "v_proj_weight": ours.v_proj_weight,
        }
    expected = F.multi_head_attention_forward(
        query,
        key,
        value,
        embed_dim_to_check=ours.embed_dim,
        num_heads=ours.num_heads,
        in_proj_bias=ours.in_proj_bias,
        bias_k=ours.bias_k,
        bias_v=ours.bias_v,
        add_zero_attn=ours.add_zero_attn,
        dropout_p=ours.dropout,
        out_proj_weight=ours.out_proj.weight,
        out_proj_bias=ours.out_proj.bias,
        **weights,
    )
    torch.testing.assert_close(ours(query, key, value), expected)


@pytest.mark.parametrize("need_weights", [False, True])
def test_gradients_of_the_masks(need_weights: bool) -> None:
    query, key = inputs(torch.float64)
    attn_mask = torch.randn(QUERIES, KEYS, dtype=torch.float64, requires_grad=True)
    padding = torch.randn(BATCH, KEYS, dtype=torch.float64, requires_grad=True)
    gradients = []
    for module in build_pair(dtype=torch.float64):
        output, _ = module(
            query,
            key,
            key,
            attn_mask=attn_mask,
            key_padding_mask=padding,
            need_weights=need_weights,
        )
        gradients.append(torch.autograd.grad(output.square().sum(), [attn_mask, padding]))
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(
    "shape", [(0, QUERIES, KEYS), (BATCH, 0, KEYS), (BATCH, QUERIES, 0)], ids=str
)
@pytest.mark.parametrize("need_weights", [False, True])
def test_nothing_to_attend(shape: tuple[int, int, int], need_weights: bool) -> None:
    batch, queries, keys = shape
    query, key = torch.randn(batch, queries, EMBED), torch.randn(batch, keys, EMBED)
    theirs, ours = build_pair()
    expected = theirs(query, key, key, need_weights=need_weights)
    torch.testing.assert_close(ours(query, key, key, need_weights=need_weights), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("autocast", [False, True])
def test_dtypes_of_output_and_weights(dtype: torch.dtype, autocast: bool) -> None:
    query, key = inputs(torch.float32 if autocast else dtype)
    results = []
    for module in build_pair(dtype=query.dtype):
        enabled = autocast and dtype != torch.float64
        with torch.autocast("cpu", dtype if enabled else torch.bfloat16, enabled=enabled):
            results.append([x.dtype for x in module(query, key, key)])
    assert results[0] == results[1]


def test_pickles_of_old_versions_say_less() -> None:
    """Modules of PyTorch 1.1 did not have the attribute; unpickling adds it."""
    _, ours = build_pair()
    state = dict(ours.__dict__)
    del state["_qkv_same_embed_dim"]
    old = relakit.MultiheadAttention.__new__(relakit.MultiheadAttention)
    old.__setstate__(state)
    query, key = inputs()
    torch.testing.assert_close(old(query, key, key), ours(query, key, key))


class SelfAttention(nn.Module):
    """Takes and gives one tensor, as tracers want it."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x)[0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_jit_trace() -> None:
    query, _ = inputs()
    for module in build_pair():
        model = SelfAttention(module)
        torch.testing.assert_close(torch.jit.trace(model, query)(query), model(query))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_dynamic_quantization_leaves_the_projections() -> None:
    query, _ = inputs()
    for module in build_pair():
        model = SelfAttention(module).eval()
        quantized = torch.ao.quantization.quantize_dynamic(model)
        torch.testing.assert_close(quantized(query), model(query))


def test_functional_calls_and_vmap() -> None:
    query, _ = inputs()
    results = []
    for module in build_pair():
        parameters = dict(module.named_parameters())

        def loss(weights: dict[str, Tensor], module: nn.Module = module) -> Tensor:
            return torch.func.functional_call(module, weights, (query,) * 3)[0].square().sum()

        def one(x: Tensor, module: nn.Module = module) -> Tensor:
            return module(x, x, x, need_weights=False)[0]

        results.append((torch.func.grad(loss)(parameters), torch.vmap(one)(query)))
    torch.testing.assert_close(results[1], results[0])


def test_compiled_encoder_in_eval_mode_with_padding() -> None:
    layer = nn.TransformerEncoderLayer(EMBED, HEADS, EMBED, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1).eval()
    relakit.convert_attention(encoder)
    x, _ = inputs()
    padding = torch.zeros(BATCH, QUERIES, dtype=torch.bool)
    padding[1, 3:] = True
    torch._dynamo.reset()
    compiled = torch.compile(encoder, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(
            compiled(x, src_key_padding_mask=padding), encoder(x, src_key_padding_mask=padding)
        )


# Differences


def test_kernels_of_torch_are_never_asked() -> None:
    layer = nn.TransformerEncoderLayer(EMBED, HEADS, EMBED, batch_first=True).eval()
    relakit.convert_attention(layer, "softmax")
    query, _ = inputs()
    with (
        torch.no_grad(),
        mock.patch("torch._native_multi_head_attention", side_effect=AssertionError),
        mock.patch("torch._transformer_encoder_layer_fwd", side_effect=AssertionError),
    ):
        layer(query)
        layer.self_attn(query, query, query)


def test_masks_of_any_floating_point_dtype() -> None:
    theirs, ours = build_pair()
    query, key = inputs()
    mask = torch.randn(QUERIES, KEYS)
    for dtype in (torch.float16, torch.float64):
        with pytest.raises(RuntimeError, match="dtype"):
            theirs(query, key, key, attn_mask=mask.to(dtype))
        output, _ = ours(query, key, key, attn_mask=mask.to(dtype))
        expected, _ = theirs(query, key, key, attn_mask=mask.to(dtype).float())
        torch.testing.assert_close(output, expected)


def test_a_boolean_and_a_float_mask_come_without_a_warning() -> None:
    _, ours = build_pair()
    query, key = inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours(
            query,
            key,
            key,
            attn_mask=torch.zeros(QUERIES, KEYS),
            key_padding_mask=torch.zeros(BATCH, KEYS, dtype=torch.bool),
        )


def test_the_causal_hint_needs_its_mask_in_eval_mode_too() -> None:
    """PyTorch's fast path ignores it: attention that was to be causal is not."""
    theirs, ours = (module.eval() for module in build_pair())
    query, _ = inputs()
    with torch.no_grad():
        causal, _ = theirs(query, query, query, is_causal=True)
        torch.testing.assert_close(causal, theirs(query, query, query)[0])
        with pytest.raises(ValueError, match="is_causal=True is a hint about attn_mask"):
            ours(query, query, query, is_causal=True)


def test_hooks_of_the_output_projection_run() -> None:
    counts = []
    for module in build_pair():
        calls: list[object] = []
        module.out_proj.register_forward_hook(lambda *_, calls=calls: calls.append(_))
        query, key = inputs()
        module(query, key, key)
        counts.append(len(calls))
    assert counts == [0, 1]


def test_the_output_is_contiguous() -> None:
    theirs, ours = build_pair()
    query, key = inputs()
    assert not theirs(query, key, key)[0].is_contiguous()
    assert ours(query, key, key)[0].is_contiguous()


def test_a_bias_of_another_dtype_than_its_weight() -> None:
    _, ours = build_pair(dtype=torch.float64)
    ours.in_proj_bias = nn.Parameter(ours.in_proj_bias.half())
    query, key = inputs(torch.float64)
    with pytest.raises(ValueError, match=r"in_proj_bias is torch\.float16; bring them to one"):
        ours(query, key, key)


class WrongShape(NamedTuple):
    call: Callable[[nn.Module], object]
    theirs: str
    ours: str


WRONG_SHAPES = {
    "key of two dimensions": WrongShape(
        lambda m: m(torch.randn(4, 4, 12), torch.randn(4, 12), torch.randn(4, 4, 12)),
        theirs="expected `key` and `value` to be 3-D but found 2-D and 3-D",
        ours=r"must all have 3 dimensions .* got query \(4, 4, 12\), key \(4, 12\), value",
    ),
    "padding of one dimension": WrongShape(
        lambda m: m(
            *[torch.randn(4, 4, 12)] * 3, key_padding_mask=torch.zeros(4, dtype=torch.bool)
        ),
        theirs="expected `key_padding_mask` to be `None` or 2-D but found 1-D",
        ours=r"key_padding_mask must have shape \(4, 4\) \[batch, keys\], got \(4,\)",
    ),
    "mask of one dimension": WrongShape(
        lambda m: m(*[torch.randn(4, 4, 12)] * 3, attn_mask=torch.zeros(4, dtype=torch.bool)),
        theirs="expected `attn_mask` to be `None`, 2-D or 3-D but found 1-D",
        ours=r"attn_mask must have shape \(4, 4\) .* or \(16, 4, 4\) .*, got \(4,\)",
    ),
    "padding of two dimensions": WrongShape(
        lambda m: m(
            *[torch.randn(4, 12)] * 3, key_padding_mask=torch.zeros(1, 4, dtype=torch.bool)
        ),
        theirs="expected `key_padding_mask` to be `None` or 1-D but found 2-D",
        ours=r"key_padding_mask must have shape \(4,\) \[keys\], got \(1, 4\)",
    ),
    "mask of too many heads": WrongShape(
        lambda m: m(*[torch.randn(4, 12)] * 3, attn_mask=torch.zeros(5, 4, 4, dtype=torch.bool)),
        theirs=r"Expected `attn_mask` shape to be \(4, 4, 4\) but got .*5, 4, 4",
        ours=r"attn_mask must have shape \(4, 4\) .* or \(4, 4, 4\) .*, got \(5, 4, 4\)",
    ),
}


@pytest.mark.parametrize("case", WRONG_SHAPES)
def test_wrong_shapes_raise_other_errors(case: str) -> None:
    theirs, ours = build_pair()
    wrong = WRONG_SHAPES[case]
    with pytest.raises(AssertionError, match=wrong.theirs):
        wrong.call(theirs)
    with pytest.raises(ValueError, match=wrong.ours):
        wrong.call(ours)

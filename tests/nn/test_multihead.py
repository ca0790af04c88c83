"""`relakit.MultiheadAttention` against `torch.nn.MultiheadAttention`, over the grid of options."""

import copy
import itertools
import warnings

import pytest
import torch
from torch import Tensor, nn

import relakit

EMBED, HEADS, BATCH, QUERIES, KEYS = 12, 4, 3, 5, 7

CONSTRUCTORS = [
    dict(zip(("sizes", "add_bias_kv", "add_zero_attn", "batch_first", "bias"), values, strict=True))
    for values in itertools.product(("same", "kdim_vdim"), *[(False, True)] * 4)
]
MASKS = list(
    itertools.product(
        ("none", "bool2d", "bool3d", "float2d", "float3d"), ("none", "padding", "float")
    )
)
WEIGHTS = [(False, True), (True, False), (True, True)]  # whether, and the mean over heads


def build_pair(options: dict[str, object], **extra: object) -> tuple[nn.Module, nn.Module]:
    """PyTorch's module and ours in float64, with one state dict."""
    options = {**options, **extra}
    if options.pop("sizes") == "kdim_vdim":
        options |= {"kdim": 6, "vdim": 10}
    theirs = nn.MultiheadAttention(EMBED, HEADS, dtype=torch.float64, **options)
    ours = relakit.MultiheadAttention(
        EMBED, HEADS, dtype=torch.float64, attention="softmax", **options
    )
    for parameter in theirs.parameters():  # biases start at 0, which would test nothing
        nn.init.normal_(parameter, std=0.5)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    return theirs, ours


def make_inputs(module: nn.MultiheadAttention, batched: bool, same: bool) -> list[Tensor]:
    def make(length: int, features: int) -> Tensor:
        shape = (length, BATCH, features) if batched else (length, features)
        x = torch.randn(shape, dtype=torch.float64)
        return x.transpose(0, 1).contiguous() if batched and module.batch_first else x

    if same:
        return [make(KEYS, EMBED)] * 3
    return [make(QUERIES, EMBED), make(KEYS, module.kdim), make(KEYS, module.vdim)]


def make_masks(
    attn: str, padding: str, queries: int, batched: bool
) -> tuple[Tensor | None, Tensor | None]:
    """Masks in nn.MultiheadAttention's convention that leave key 0 to every query."""
    batch = BATCH if batched else 1
    shape = {"2d": (queries, KEYS), "3d": (batch * HEADS, queries, KEYS)}.get(attn[-2:])
    attn_mask = None
    if shape is not None:
        masked = torch.rand(shape) < 0.4
        masked[..., 0] = False
        bias = torch.randn(shape, dtype=torch.float64).masked_fill(masked, -torch.inf)
        attn_mask = masked if attn.startswith("bool") else bias
    padding_mask = None
    if padding != "none":
        padded = torch.rand(batch, KEYS) < 0.4
        padded[:, 0] = False
        bias = torch.randn(batch, KEYS, dtype=torch.float64).masked_fill(padded, -torch.inf)
        padding_mask = padded if padding == "padding" else bias
        padding_mask = padding_mask if batched else padding_mask[0]
    return attn_mask, padding_mask


def run(module: nn.Module, inputs: list[Tensor], **arguments: object) -> dict[str, Tensor]:
    """Output, weights and all gradients of a weighted sum of both."""
    shared = inputs[0] is inputs[1]
    leaves = [inputs[0].clone().requires_grad_()] * 3 if shared else None
    leaves = leaves or [x.clone().requires_grad_() for x in inputs]
    module.zero_grad()
    torch.manual_seed(1)
    with warnings.catch_warnings():  # PyTorch's, on a boolean and a float mask together
        warnings.simplefilter("ignore")
        output, weights = module(*leaves, **arguments)
    results = {"output": output}
    if weights is not None:
        results["weights"] = weights
    loss = sum(
        (x * torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view_as(x)).sum()
        for x in results.values()
    )
    loss.backward()
    results |= {f"d{name}": p.grad for name, p in module.named_parameters()}
    results |= {f"d{name}": x.grad for name, x in zip("qkv", leaves, strict=True)}
    return results


def assert_same(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        if value is None:
            assert actual[name] is None, name
        else:
            torch.testing.assert_close(
                actual[name], value, atol=1e-12, rtol=1e-10, msg=lambda m, n=name: f"{n}: {m}"
            )


@pytest.mark.parametrize(("attn", "padding"), MASKS)
@pytest.mark.parametrize(
    "options",
    CONSTRUCTORS,
    ids=lambda o: "-".join([str(o["sizes"]), *[k for k, v in o.items() if v is True]]),
)
def test_softmax_equals_torch(options: dict[str, object], attn: str, padding: str) -> None:
    """Every constructor with every pair of masks.

    The ways to ask for weights take turns: each meets every constructor and every pair of masks.
    """
    theirs, ours = build_pair(options)
    same_choices = (False, True) if options["sizes"] == "same" else (False,)
    turn = CONSTRUCTORS.index(options) + MASKS.index((attn, padding))
    for batched, same in itertools.product((True, False), same_choices):
        inputs = make_inputs(theirs, batched, same)
        queries = KEYS if same else QUERIES
        attn_mask, padding_mask = make_masks(attn, padding, queries, batched)
        need_weights, average = WEIGHTS[turn % len(WEIGHTS)]
        turn += 1
        arguments = {
            "key_padding_mask": padding_mask,
            "attn_mask": attn_mask,
            "need_weights": need_weights,
            "average_attn_weights": average,
        }
        assert_same(run(ours, inputs, **arguments), run(theirs, inputs, **arguments))


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("padding", ["none", "padding", "float"])
@pytest.mark.parametrize("options", CONSTRUCTORS[:16], ids=str)
def test_softmax_equals_torch_with_causal_hint(
    options: dict[str, object], padding: str, need_weights: bool
) -> None:
    theirs, ours = build_pair(options)
    for batched in (True, False):
        inputs = make_inputs(theirs, batched, same=True)
        _, padding_mask = make_masks("none", padding, KEYS, batched)
        for causal_mask in (
            nn.Transformer.generate_square_subsequent_mask(KEYS, dtype=torch.float64),
            torch.ones(KEYS, KEYS, dtype=torch.bool).triu(1),
        ):
            arguments = {
                "key_padding_mask": padding_mask,
                "attn_mask": causal_mask,
                "is_causal": True,
                "need_weights": need_weights,
            }
            assert_same(run(ours, inputs, **arguments), run(theirs, inputs, **arguments))


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_softmax_equals_torchs_inference_path(batch_first: bool, need_weights: bool) -> None:
    options = dict(CONSTRUCTORS[0], batch_first=batch_first, bias=True)
    theirs, ours = (module.eval() for module in build_pair(options))
    inputs = make_inputs(theirs, batched=True, same=True)
    _, padding = make_masks("none", "padding", KEYS, batched=True)
    with torch.no_grad():
        expected = theirs(*inputs, key_padding_mask=padding, need_weights=need_weights)
        actual = ours(*inputs, key_padding_mask=padding, need_weights=need_weights)
    torch.testing.assert_close(actual[0], expected[0])
    assert (actual[1] is None) == (expected[1] is None)
    if need_weights:
        torch.testing.assert_close(actual[1], expected[1])


@pytest.mark.parametrize("need_weights", [False, True])
def test_dropout_draws_the_same_numbers_as_torch(need_weights: bool) -> None:
    theirs, ours = build_pair(CONSTRUCTORS[0], dropout=0.5)
    inputs = make_inputs(theirs, batched=True, same=False)
    expected = run(theirs, inputs, need_weights=need_weights)
    assert_same(run(ours, inputs, need_weights=need_weights), expected)
    theirs.eval(), ours.eval()
    without = run(ours, inputs, need_weights=need_weights)
    assert_same(without, run(theirs, inputs, need_weights=need_weights))
    assert not torch.allclose(without["output"], expected["output"])


def test_same_seed_gives_the_same_projections_as_torch() -> None:
    torch.manual_seed(5)
    theirs = nn.MultiheadAttention(EMBED, HEADS, add_bias_kv=True)
    torch.manual_seed(5)
    ours = relakit.MultiheadAttention(EMBED, HEADS, add_bias_kv=True, attention="rela-g")
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value), name
    assert set(ours.state_dict()) - set(theirs.state_dict()) == {"norm.weight", "norm.gate"}


def test_fully_masked_query_is_zero_where_torch_has_nan() -> None:
    theirs, ours = build_pair(CONSTRUCTORS[0])
    inputs = make_inputs(theirs, batched=True, same=False)
    mask = torch.zeros(QUERIES, KEYS, dtype=torch.bool)
    mask[2] = True
    assert theirs(*inputs, attn_mask=mask)[0].isnan().any()
    # Without weights PyTorch has zeros too, and so have we in both cases.
    expected = run(theirs, inputs, attn_mask=mask, need_weights=False)
    assert_same(run(ours, inputs, attn_mask=mask, need_weights=False), expected)
    results = run(ours, inputs, attn_mask=mask, need_weights=True)
    torch.testing.assert_close(results["output"], expected["output"])
    assert (results["weights"][:, 2] == 0).all()
    assert all(value.isfinite().all() for value in results.values())


@pytest.mark.parametrize("name", relakit.ATTENTIONS)
def test_layouts_agree(name: str) -> None:
    sequence_first = relakit.MultiheadAttention(EMBED, HEADS, attention=name)
    batch_first = relakit.MultiheadAttention(EMBED, HEADS, attention=name, batch_first=True)
    batch_first.load_state_dict(sequence_first.state_dict())
    x = torch.randn(KEYS, BATCH, EMBED)
    expected, expected_weights = sequence_first(x, x, x)
    output, weights = batch_first(*[x.transpose(0, 1)] * 3)
    torch.testing.assert_close(output.transpose(0, 1), expected)
    torch.testing.assert_close(weights, expected_weights)
    for module in (sequence_first, batch_first):
        output, weights = module(*[x[:, 1]] * 3)
        torch.testing.assert_close(output, expected[:, 1])
        torch.testing.assert_close(weights, expected_weights[1])


def test_learned_threshold_per_head() -> None:
    spec = relakit.AttentionSpec(threshold="learned")
    module = relakit.MultiheadAttention(EMBED, HEADS, attention=spec)
    assert torch.equal(module.state_dict()["threshold"], torch.zeros(HEADS))
    with torch.no_grad():
        module.threshold.copy_(torch.tensor([0.0, 0.1, 0.2, 1e9]))
    x = torch.randn(KEYS, BATCH, EMBED)
    output, weights = module(x, x, x, average_attn_weights=False)
    assert (weights[:, 3] == 0).all()
    assert (weights[:, 0] > 0).any()
    output.square().sum().backward()
    assert module.threshold.grad[3] == 0
    assert (module.threshold.grad[:3] != 0).all()


@pytest.mark.parametrize("name", relakit.ATTENTIONS)
def test_reset_parameters_starts_afresh(name: str) -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS, attention=name)
    torch.manual_seed(3)
    fresh = relakit.MultiheadAttention(EMBED, HEADS, attention=name)
    for parameter in module.parameters():
        nn.init.constant_(parameter, 7.0)
    module._reset_parameters()
    for (key, value), other in zip(
        module.state_dict().items(), fresh.state_dict().values(), strict=True
    ):
        assert not (value == 7.0).any() or key == "out_proj.weight", key
        assert value.shape == other.shape


def test_deepcopy_and_repr() -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS)
    x = torch.randn(KEYS, BATCH, EMBED)
    twin = copy.deepcopy(module)
    assert torch.equal(twin(x, x, x)[0], module(x, x, x)[0])
    assert "relu" in repr(module)
    assert "GatedRMSNorm(12" in repr(module)


def test_builds_on_the_meta_device() -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS, device="meta")
    x = torch.randn(KEYS, BATCH, EMBED, device="meta")
    assert module(x, x, x)[0].shape == x.shape
    assert {p.device.type for p in module.parameters()} == {"meta"}


def test_backend_is_passed_on() -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS, backend="sdpa")
    x = torch.randn(KEYS, BATCH, EMBED)
    with pytest.raises(ValueError, match=r"backend 'sdpa' cannot serve this call: .*'relu'"):
        module(x, x, x)

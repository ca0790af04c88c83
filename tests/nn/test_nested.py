"""Nested tensors against `torch.nn.MultiheadAttention` run on one sequence after the other."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

import relakit

EMBED, HEADS = 12, 4
QUERY_LENGTHS, KEY_LENGTHS = (4, 6, 1), (5, 2, 7)
BATCH, QUERIES, KEYS = 3, 6, 7
LAYOUTS = [torch.jagged, torch.strided]

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*nested tensors is in prototype", "ignore:Support for mismatched"
)


def sequences(lengths: tuple[int, ...]) -> list[Tensor]:
    return [torch.randn(n, EMBED, dtype=torch.float64, requires_grad=True) for n in lengths]


def nested(parts: list[Tensor], layout: torch.layout) -> Tensor:
    return torch.nested.as_nested_tensor(parts, layout=layout)


def build(**options: object) -> tuple[nn.MultiheadAttention, relakit.MultiheadAttention]:
    settings = {"batch_first": True, "dtype": torch.float64} | options
    theirs = nn.MultiheadAttention(EMBED, HEADS, **settings)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    return theirs, relakit.MultiheadAttention.from_torch(theirs, "softmax")


def gradients(outputs: list[Tensor], wanted: list[Tensor]) -> tuple[Tensor, ...]:
    loss = sum((x * torch.linspace(-1, 1, EMBED, dtype=x.dtype)).square().sum() for x in outputs)
    return torch.autograd.grad(loss, wanted, allow_unused=True)


def boolean(*shape: int) -> Tensor:
    """A mask that leaves key 0 to everyone."""
    mask = torch.rand(shape) < 0.4
    mask[..., 0] = False
    return mask


def additive(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64).masked_fill(boolean(*shape), -torch.inf)


def no_mask(*shape: int) -> None:
    return None


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("padding", [no_mask, boolean, additive])
@pytest.mark.parametrize("make_mask", [no_mask, boolean, additive])
@pytest.mark.parametrize("per_head", [False, True])
@pytest.mark.parametrize("extra", [{}, {"add_bias_kv": True, "add_zero_attn": True}], ids=str)
def test_cross_attention_with_masks(
    layout: torch.layout,
    padding: Callable[..., Tensor | None],
    make_mask: Callable[..., Tensor | None],
    per_head: bool,
    extra: dict[str, bool],
) -> None:
    theirs, ours = build(**extra)
    query, key = sequences(QUERY_LENGTHS), sequences(KEY_LENGTHS)
    mask = make_mask(BATCH * HEADS, QUERIES, KEYS) if per_head else make_mask(QUERIES, KEYS)
    key_padding = padding(BATCH, KEYS)
    memory = nested(key, layout)
    output, weights = ours(
        nested(query, layout), memory, memory, attn_mask=mask, key_padding_mask=key_padding
    )
    assert output.is_nested
    assert output.layout == layout
    expected = []
    for i, (q, k) in enumerate(zip(query, key, strict=True)):
        own = mask
        if mask is not None:
            own = mask.view(BATCH, HEADS, QUERIES, KEYS)[i] if per_head else mask
            own = own[..., : len(q), : len(k)]
        own_padding = None if key_padding is None else key_padding[i, : len(k)]
        out, w = theirs(q, k, k, attn_mask=own, key_padding_mask=own_padding)
        expected.append(out)
        if not extra:
            torch.testing.assert_close(weights[i, : len(q), : len(k)], w)
            assert (weights[i, :, len(k) :] == 0).all()
        assert (weights[i, len(q) :] == 0).all()
    parts = list(output.unbind())
    torch.testing.assert_close(parts, expected)
    wanted = [*query, *key, *theirs.parameters()]
    torch.testing.assert_close(gradients(parts, wanted), gradients(expected, wanted))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("kind", ["mask", "hint", "bias"])
def test_causal_self_attention(layout: torch.layout, need_weights: bool, kind: str) -> None:
    theirs, ours = build()
    parts = sequences(QUERY_LENGTHS)
    x = nested(parts, layout)
    longest = max(QUERY_LENGTHS)
    mask = nn.Transformer.generate_square_subsequent_mask(longest, dtype=torch.float64)
    if kind == "bias":
        mask = causal_lower_right(longest, longest)
    output, weights = ours(
        x, x, x, attn_mask=mask, is_causal=kind == "hint", need_weights=need_weights
    )
    assert (weights is not None) == need_weights
    expected = []
    for part in parts:
        causal = nn.Transformer.generate_square_subsequent_mask(len(part), dtype=torch.float64)
        expected.append(theirs(part, part, part, attn_mask=causal)[0])
    torch.testing.assert_close(list(output.unbind()), expected)


@pytest.mark.parametrize("average", [False, True])
def test_what_torch_can_do_in_eval_mode(average: bool) -> None:
    """Outputs and weights of its fast path, which is the only one that takes nested tensors."""
    theirs, ours = (module.float().eval() for module in build())
    x = nested([part.detach().float() for part in sequences(QUERY_LENGTHS)], torch.strided)
    with torch.no_grad():
        expected, expected_weights = theirs(x, x, x, average_attn_weights=average)
        output, weights = ours(x, x, x, average_attn_weights=average)
    torch.testing.assert_close(list(output.unbind()), list(expected.unbind()))
    torch.testing.assert_close(weights, expected_weights)


@pytest.mark.parametrize("name", ["rela-g", "entmax15"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_every_sequence_is_attended_to_alone(layout: torch.layout, name: str) -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS, batch_first=True, attention=name).double()
    parts = sequences(QUERY_LENGTHS)
    x = nested(parts, layout)
    output, weights = module(x, x, x, average_attn_weights=False)
    assert weights.shape == (BATCH, HEADS, QUERIES, QUERIES)
    expected = [module(part, part, part)[0] for part in parts]
    torch.testing.assert_close(list(output.unbind()), expected)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_residual_connection_and_a_norm(layout: torch.layout) -> None:
    """PyTorch adds jagged tensors only if they share their lengths."""
    module = relakit.MultiheadAttention(EMBED, HEADS, batch_first=True)
    parts = [part.detach().float() for part in sequences(QUERY_LENGTHS)]
    x = nested(parts, layout)
    norm = nn.LayerNorm(EMBED)
    result = norm(x + module(x, x, x, need_weights=False)[0])
    expected = [norm(part + module(part, part, part)[0]) for part in parts]
    torch.testing.assert_close(list(result.unbind()), expected)


def test_jagged_with_holes() -> None:
    """Sequences that are views into a padded tensor."""
    module = relakit.MultiheadAttention(EMBED, HEADS, batch_first=True)
    padded = torch.randn(3, 6, EMBED, requires_grad=True)
    starts, lengths = torch.tensor([0, 1, 2]), torch.tensor([2, 3, 4])
    x = torch.nested.narrow(padded, 1, starts, lengths, layout=torch.jagged)
    output = x + module(x, x, x)[0]
    parts = [padded[i, s : s + n] for i, (s, n) in enumerate(zip(starts, lengths, strict=True))]
    expected = [part + module(part, part, part)[0] for part in parts]
    torch.testing.assert_close(list(output.unbind()), expected)
    torch.testing.assert_close(
        gradients(list(output.unbind()), [padded]), gradients(expected, [padded])
    )


def strided(*lengths: int, features: int = EMBED) -> Tensor:
    return torch.nested.nested_tensor([torch.randn(n, features) for n in lengths])


BAD_CALLS: dict[str, tuple[Callable[[], tuple[object, ...]], dict[str, object], str]] = {
    "key is dense": (
        lambda: (strided(3, 5), torch.randn(2, 5, EMBED), torch.randn(2, 5, EMBED)),
        {},
        "query is a nested tensor and key is not; make all three nested",
    ),
    "query is dense": (
        lambda: (torch.randn(2, 5, EMBED), strided(3, 5), strided(3, 5)),
        {},
        "key is a nested tensor and query is not; make all three nested",
    ),
    "numbers of sequences": (
        lambda: (strided(3, 5), strided(3), strided(3)),
        {},
        "same number of sequences, got 2 and 1",
    ),
    "lengths of key and value": (
        lambda: (strided(3, 5), strided(3, 4), strided(3, 2)),
        {},
        r"same lengths, got \[3, 4\] and \[3, 2\]",
    ),
    "features": (
        lambda: (strided(3, 5, features=7),) * 3,
        {},
        r"sequences in query must have shape \[positions, 12\], got \(3, 7\)",
    ),
    "no sequence": (
        lambda: (torch.nested.nested_tensor([]),) * 3,
        {},
        "at least one sequence, got none",
    ),
    "attn_mask": (
        lambda: (strided(3, 5),) * 3,
        {"attn_mask": torch.ones(4, 4, dtype=torch.bool)},
        r"attn_mask must have shape \(5, 5\) .*got \(4, 4\)",
    ),
    "key_padding_mask": (
        lambda: (strided(3, 5),) * 3,
        {"key_padding_mask": torch.ones(2, 4, dtype=torch.bool)},
        r"key_padding_mask must have shape \(2, 5\) .*got \(2, 4\)",
    ),
    "is_causal": (
        lambda: (strided(3, 5),) * 3,
        {"is_causal": True},
        "is_causal=True is a hint about attn_mask and needs it",
    ),
    "causal bias of another size": (
        lambda: (strided(3, 5),) * 3,
        {"attn_mask": causal_upper_left(4, 4)},
        r"causal_upper_left\(4, 4\).*; make it with causal_upper_left\(5, 5\)",
    ),
    "alignment": (
        lambda: (strided(3, 5), *[strided(4, 6)] * 2),
        {"attn_mask": causal_lower_right(5, 6)},
        "causal_lower_right is one mask for all sequences",
    ),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_call(case: str) -> None:
    make_inputs, options, message = BAD_CALLS[case]
    query, key, value = make_inputs()
    module = relakit.MultiheadAttention(EMBED, HEADS, batch_first=True)
    with pytest.raises(ValueError, match=message):
        module(query, key, value, **options)


def test_positions_first() -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS)
    x = strided(3, 5)
    with pytest.raises(ValueError, match="batch_first=False; build it with batch_first=True"):
        module(x, x, x)

"""The causal masks of `torch.nn.attention.bias`, in the function and in the module."""

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

import relakit
from relakit.ops.causal_bias import causal_pattern

MAKERS = [causal_upper_left, causal_lower_right]
LENGTHS = [(5, 7), (6, 6), (7, 4)]

pytestmark = pytest.mark.filterwarnings("ignore:Lower right causal bias")


def visible(make: Callable[[int, int], Tensor], queries: int, keys: int) -> Tensor:
    """By the definition in PyTorch's documentation."""
    offset = keys - queries if make is causal_lower_right else 0
    return torch.ones(queries, keys, dtype=torch.bool).tril(offset)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
@pytest.mark.parametrize("activation", ["relu", "sparsemax"])
def test_function(
    make: Callable[[int, int], Tensor], queries: int, keys: int, activation: str
) -> None:
    query, key = torch.randn(2, 3, queries, 8), torch.randn(2, 3, keys, 8)
    result = relakit.attention(query, key, key, make(queries, keys), activation=activation)
    mask = visible(make, queries, keys)
    expected = relakit.attention(query, key, key, mask, activation=activation)
    torch.testing.assert_close(result, expected)
    details = relakit.attention_details(query, key, key, make(queries, keys), weights="dense")
    assert (details.weights[..., ~mask] == 0).all()


@pytest.mark.parametrize("make", MAKERS)
def test_softmax_equals_torch(make: Callable[[int, int], Tensor]) -> None:
    query, key = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8)
    expected = F.scaled_dot_product_attention(query, key, key, make(5, 7))
    actual = relakit.attention(query, key, key, make(5, 7), activation="softmax")
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True}, {"batch_first": True}], ids=str)
@pytest.mark.parametrize("need_weights", [False, True])
def test_module(
    make: Callable[[int, int], Tensor],
    queries: int,
    keys: int,
    options: dict[str, bool],
    need_weights: bool,
) -> None:
    """As `nn.MultiheadAttention` with the mask that it stands for, and padding besides."""
    theirs = nn.MultiheadAttention(12, 4, **options)
    ours = relakit.MultiheadAttention.from_torch(theirs, "softmax")
    query, key = torch.randn(queries, 2, 12), torch.randn(keys, 2, 12)
    if ours.batch_first:
        query, key = query.transpose(0, 1), key.transpose(0, 1)
    # Without keys, PyTorch has NaN.
    rows = visible(make, queries, keys).any(1) | bool(options.get("add_bias_kv"))
    for padding in (None, torch.tensor([[False] * keys, [False] * (keys - 1) + [True]])):
        arguments = {"key_padding_mask": padding, "need_weights": need_weights}
        output, _ = ours(query, key, key, attn_mask=make(queries, keys), **arguments)
        mask = ~visible(make, queries, keys)
        expected, _ = theirs(query, key, key, attn_mask=mask, **arguments)
        if ours.batch_first:
            output, expected = output.transpose(0, 1), expected.transpose(0, 1)
        torch.testing.assert_close(output[rows], expected[rows])


@pytest.mark.parametrize("make", MAKERS)
def test_sizes_that_do_not_fit(make: Callable[[int, int], Tensor]) -> None:
    name = make.__name__
    message = rf"attn_mask is {name}\(5, 6\), made for 5 queries and 6 keys, got 5 and 7; make it"
    query, key = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8)
    with pytest.raises(ValueError, match=message):
        relakit.attention(query, key, key, make(5, 6))
    module = relakit.MultiheadAttention(12, 4)
    with pytest.raises(ValueError, match=message):
        module(torch.randn(5, 2, 12), *[torch.randn(7, 2, 12)] * 2, attn_mask=make(5, 6))
    with pytest.raises(ValueError, match="exclude each other"):
        relakit.attention(query, key, key, make(5, 7), is_causal=True)


def test_other_masks_are_none_of_them() -> None:
    for mask in (None, torch.zeros(2, 2), nn.Parameter(torch.zeros(2, 2)), "mask"):
        assert causal_pattern(mask) is None


def test_the_module_of_torch_is_not_imported() -> None:
    """It imports torch's compiler, which takes a second."""
    code = (
        "import sys, torch, relakit; x = torch.nn.Parameter(torch.zeros(2, 2));"
        "relakit.attention(x, x, x, torch.nn.Parameter(torch.zeros(2, 2)));"
        "sys.exit('torch.nn.attention.bias' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)

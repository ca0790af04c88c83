"""The mask rule: both masks of `nn.MultiheadAttention` as one of SDPA, position by position."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from relakit.nn.masks import merge_masks

BATCH, HEADS, QUERIES, KEYS = 2, 3, 4, 5
SHAPES = {"2d": (QUERIES, KEYS), "3d": (BATCH * HEADS, QUERIES, KEYS), "padding": (BATCH, KEYS)}


def make_mask(kind: str) -> Tensor | None:
    """Such as "bool 3d" or "float padding"; float masks hide some keys and shift the others."""
    if kind == "none":
        return None
    dtype, shape = kind.split()
    hidden = torch.rand(SHAPES[shape]) < 0.4
    if dtype == "bool":
        return hidden
    return torch.randn(SHAPES[shape]).masked_fill(hidden, -math.inf)


def bias(mask: Tensor | None, *index: int) -> float:
    """What one entry of a mask of `nn.MultiheadAttention` adds to a score."""
    if mask is None:
        return 0.0
    entry = mask[index].item()
    return (-math.inf if entry else 0.0) if mask.dtype == torch.bool else float(entry)


@pytest.mark.parametrize("extra_keys", [0, 2])
@pytest.mark.parametrize("padding_kind", ["none", "bool padding", "float padding"])
@pytest.mark.parametrize("attn_kind", ["none", "bool 2d", "bool 3d", "float 2d", "float 3d"])
def test_every_position(attn_kind: str, padding_kind: str, extra_keys: int) -> None:
    attn_mask, padding = make_mask(attn_kind), make_mask(padding_kind)
    merged = merge_masks(
        attn_mask, padding, batch=BATCH, heads=HEADS, dtype=torch.float32, extra_keys=extra_keys
    )
    if attn_mask is None and padding is None:
        assert merged is None
        return
    assert merged is not None
    has_floats = "float" in attn_kind + padding_kind
    assert merged.dtype == (torch.float32 if has_floats else torch.bool)

    merged = merged.expand(BATCH, HEADS, QUERIES, KEYS + extra_keys)
    for b, h, q, k in itertools.product(*map(range, merged.shape)):
        expected = 0.0  # nobody hides an extra key
        if k < KEYS:
            index = (b * HEADS + h, q, k) if "3d" in attn_kind else (q, k)
            expected = bias(attn_mask, *index) + bias(padding, b, k)
        found = merged[b, h, q, k].item()
        if has_floats:
            assert found == pytest.approx(expected), (b, h, q, k)
        else:
            assert found is (expected == 0.0), "True means: attend"


@pytest.mark.parametrize("mask_dtype", [torch.bool, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_biases_are_never_in_half_precision(dtype: torch.dtype, mask_dtype: torch.dtype) -> None:
    attn_mask = torch.zeros(QUERIES, KEYS, dtype=mask_dtype)
    padding = torch.zeros(BATCH, KEYS)
    merged = merge_masks(attn_mask, padding, batch=BATCH, heads=HEADS, dtype=dtype)
    assert merged is not None
    assert merged.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_boolean_masks_stay_boolean_for_every_query(dtype: torch.dtype) -> None:
    padding = torch.tensor([[False, True]])
    merged = merge_masks(None, padding, batch=1, heads=HEADS, dtype=dtype)
    assert merged is not None
    assert merged.tolist() == [[[[True, False]]]]


def test_gradients_reach_a_float_mask() -> None:
    attn_mask = torch.zeros(QUERIES, KEYS, requires_grad=True)
    padding = make_mask("bool padding")
    merged = merge_masks(
        attn_mask, padding, batch=BATCH, heads=HEADS, dtype=torch.float32, extra_keys=1
    )
    assert merged is not None
    merged.nan_to_num(neginf=0.0).sum().backward()
    assert attn_mask.grad is not None
    assert attn_mask.grad.shape == (QUERIES, KEYS)
    visible = BATCH - padding.sum(0)  # type: ignore[union-attr]
    assert torch.equal(attn_mask.grad, visible.float().expand(QUERIES, KEYS))

"""`AttentionCore`: heads in, joined heads behind the norm out."""

import pytest
import torch

import relakit
from relakit.nn.core import AttentionCore

HEADS, DIM = 4, 8


@pytest.fixture
def heads() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    query = torch.randn(2, HEADS, 12, DIM, generator=generator)
    key = torch.randn(2, HEADS // 2, 12, DIM, generator=generator)
    return query, key, torch.randn(2, HEADS // 2, 12, DIM, generator=generator)


@pytest.mark.parametrize("attention", ["rela-g", "rela-i", "softmax"])
@pytest.mark.parametrize("window", [None, 3])
def test_equals_the_function_then_the_norm(heads, attention, window):
    core = AttentionCore(HEADS, DIM, attention)
    spec = core.attention
    plain = relakit.attention(
        *heads,
        is_causal=True,
        window=window,
        activation=spec.activation,
        enable_gqa=True,
    )
    joined = plain.transpose(1, 2).flatten(2)
    expected = joined if core.norm is None else core.norm(joined)
    torch.testing.assert_close(core(*heads, is_causal=True, window=window), expected)


def test_a_window_leaves_out_what_lies_before_it(heads):
    core = AttentionCore(HEADS, DIM)
    query, key, value = heads
    before = core(query, key, value, is_causal=True, window=3)
    changed = value.clone()
    changed[:, :, 0] += 1.0
    after = core(query, key, changed, is_causal=True, window=3)
    assert not torch.equal(before[:, :3], after[:, :3])
    assert torch.equal(before[:, 3:], after[:, 3:])


@pytest.mark.parametrize("attention", ["rela-g", "softmax"])
def test_packed_sequences_do_not_see_each_other(heads, attention):
    core = AttentionCore(HEADS, DIM, attention)
    one_row = [head[:1] for head in heads]
    packed = core(*one_row, is_causal=True, sequence_starts=torch.tensor([0, 5, 12]))
    for start, end in ((0, 5), (5, 12)):
        alone = core(*(head[:, :, start:end] for head in one_row), is_causal=True)
        torch.testing.assert_close(packed[:, start:end], alone)


@pytest.mark.parametrize("window", [None, 3])
def test_a_mask_excludes_causal(heads, window):
    mask = torch.ones(12, 12, dtype=torch.bool)
    with pytest.raises(ValueError, match="is_causal"):
        AttentionCore(HEADS, DIM)(*heads, mask, is_causal=True, window=window)


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("attention", ["rela-g", "softmax"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_mask_may_have_the_dtype_of_half_precision_queries(heads, dtype, attention, window):
    """As for `relakit.attention`."""
    core = AttentionCore(HEADS, DIM, attention, dtype=dtype)
    half = [head.to(dtype) for head in heads]
    mask = torch.randn(12, 12, generator=torch.Generator().manual_seed(4)).to(dtype)
    output = core(*half, mask, window=window)
    assert output.dtype == dtype
    assert torch.equal(output, core(*half, mask.float(), window=window))


def test_a_learned_threshold_is_what_is_subtracted(heads):
    core = AttentionCore(HEADS, DIM, relakit.AttentionSpec(activation="relu", threshold="learned"))
    plain = core(*heads)
    with torch.no_grad():
        core.threshold.fill_(100.0)
    assert core(*heads).abs().max() == 0.0
    assert plain.abs().max() > 0.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_float16_autocast_does_not_overflow_before_the_norm(heads, dtype):
    core = AttentionCore(HEADS, DIM)
    large = [200 * x for x in heads]
    with torch.autocast("cpu", torch.float16):
        output = core(*(x.to(dtype) for x in large))
    assert output.dtype == torch.float16
    torch.testing.assert_close(output.float(), core(*large), rtol=0.01, atol=0.01)


def test_values_may_have_fewer_heads_than_keys(heads):
    query, key, value = heads
    core = AttentionCore(HEADS, DIM)
    expected = core(query, key, value[:, :1].expand_as(value))
    torch.testing.assert_close(core(query, key, value[:, :1]), expected)


@pytest.mark.parametrize("sizes", [(0, 8), (4, 0), (-1, 8)])
def test_sizes_are_at_least_1(sizes):
    with pytest.raises(ValueError, match=r"must be at least 1, got"):
        AttentionCore(*sizes)


def test_shapes_are_those_of_the_module(heads):
    query, key, value = heads
    with pytest.raises(ValueError, match=r"key must be \[batch, heads.*got shape \(2, 12, 8\)"):
        AttentionCore(HEADS, DIM)(query, key[:, 0], value)
    for other in (AttentionCore(2, DIM, "softmax"), AttentionCore(HEADS, 4, "softmax")):
        with pytest.raises(ValueError, match=r"query has 4 heads and value 8 features per head"):
            other(query, key, value)

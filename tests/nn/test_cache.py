"""The cache: generating step by step gives what one call over all positions gives."""

import pytest
import torch
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

import relakit


@pytest.fixture(autouse=True)
def _no_gradients() -> object:
    with torch.no_grad():
        yield


@pytest.mark.parametrize("attention", ["rela-g", "softmax", "rela-g-gelu"])
@pytest.mark.parametrize(
    "options",
    [{}, {"kv_heads": 1}, {"kv_heads": 2, "window": 3}, {"window": (4, 9)}, {"add_bias_kv": True}],
    ids=str,
)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("steps", [[1] * 13, [5, 1, 1, 6], [13]], ids=str)
def test_steps_equal_one_call(
    attention: str, options: dict[str, object], batch_first: bool, steps: list[int]
) -> None:
    module = relakit.MultiheadAttention(
        32, 4, batch_first=batch_first, attention=attention, **options
    )
    dim = 1 if batch_first else 0
    x = torch.randn(2, 13, 32) if batch_first else torch.randn(13, 2, 32)
    expected, weights = module(
        x, x, x, attn_mask=causal_upper_left(13, 13), average_attn_weights=False
    )
    cache = relakit.KeyValueCache(capacity=2)  # so that it grows
    outputs = []
    for part in x.split(steps, dim):
        output, last = module(
            part, part, part, is_causal=True, cache=cache, average_attn_weights=False
        )
        outputs.append(output)
    assert len(cache) == 13
    torch.testing.assert_close(torch.cat(outputs, dim), expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(last, weights[:, :, -steps[-1] :], atol=1e-5, rtol=1e-4)


def test_unbatched_and_without_causality() -> None:
    module = relakit.MultiheadAttention(32, 4, batch_first=True)
    x = torch.randn(7, 32)
    cache = relakit.KeyValueCache()
    module(x[:4], x[:4], x[:4], cache=cache)
    output, _ = module(x[4:], x[4:], x[4:], cache=cache)
    torch.testing.assert_close(output, module(x[4:], x, x)[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("kind", ["mask", "bias"])
def test_masks_cover_all_keys(is_causal: bool, need_weights: bool, kind: str) -> None:
    module = relakit.MultiheadAttention(32, 4, batch_first=True)
    x = torch.randn(2, 9, 32)
    hidden = torch.ones(9, 9, dtype=torch.bool).triu(1)
    expected, _ = module(x, x, x, attn_mask=hidden)
    cache = relakit.KeyValueCache()
    first, rest = x[:, :4], x[:, 4:]
    module(first, first, first, attn_mask=hidden[:4, :4], cache=cache)
    output, _ = module(
        rest,
        rest,
        rest,
        attn_mask=hidden[4:] if kind == "mask" else causal_lower_right(5, 9),
        is_causal=is_causal,  # a hint that must not align the mask with the first key
        need_weights=need_weights,
        cache=cache,
    )
    torch.testing.assert_close(output, expected[:, 4:], atol=1e-5, rtol=1e-4)


def test_left_padding_is_masked() -> None:
    """Two sequences of different lengths in one cache."""
    module = relakit.MultiheadAttention(32, 4, batch_first=True)
    x = torch.randn(2, 6, 32)
    padding = torch.zeros(2, 6, dtype=torch.bool)
    padding[1, :2] = True
    cache = relakit.KeyValueCache()
    first = x[:, :5]
    module(first, first, first, is_causal=True, key_padding_mask=padding[:, :5], cache=cache)
    last = x[:, 5:]
    output, _ = module(last, last, last, is_causal=True, key_padding_mask=padding, cache=cache)
    for i, start in enumerate((0, 2)):
        alone = x[i : i + 1, start:]
        torch.testing.assert_close(
            output[i : i + 1], module(last[i : i + 1], alone, alone)[0], atol=1e-5, rtol=1e-4
        )
    with pytest.raises(ValueError, match=r"key_padding_mask must have shape \(2, 7\)"):
        module(last, last, last, key_padding_mask=padding, cache=cache)


@pytest.mark.parametrize("beams", [[1, 1, 0], [2, 0, 1], [0], [2, 2, 1, 0, 0]], ids=str)
@pytest.mark.parametrize("positions", [0, 1])
def test_beams_are_reordered(beams: list[int], positions: int) -> None:
    cache = relakit.KeyValueCache(8)
    keys, values = torch.randn(2, 3, 5, 16)
    new = torch.randn(2, len(beams), 1, 16)

    def placed(x: Tensor) -> Tensor:
        return x if positions == 1 else x.transpose(0, 1)

    cache.append(placed(keys), placed(values), positions=positions)
    cache.reorder(torch.tensor(beams))
    found = cache.append(placed(new[0]), placed(new[1]), positions=positions)
    for actual, old, added in zip(found, (keys, values), new, strict=True):
        assert torch.equal(placed(actual), torch.cat([old[beams], added], 1))


def test_appending_copies_nothing() -> None:
    cache = relakit.KeyValueCache(10)
    key, value = torch.randn(2, 1, 2, 4, 8)
    first, _ = cache.append(key, value)
    address = first.data_ptr()
    for length in range(5, 11):
        keys, _ = cache.append(key[:, :, :1], value[:, :, :1])
        assert keys.data_ptr() == address
        assert keys.shape == (1, 2, length, 8)
        assert cache.capacity == 10
    keys, values = cache.append(key[:, :, :1], value[:, :, :1])
    assert cache.capacity == 20
    assert torch.equal(keys[:, :, :4], key)
    assert torch.equal(values[:, :, :4], value)
    cache.truncate(2)
    assert torch.equal(cache.append(key, value)[1], torch.cat([value[:, :, :2], value], 2))


def test_with_the_function() -> None:
    query, key, value = torch.randn(3, 2, 4, 9, 16)
    key, value = key[:, :2], value[:, :2]
    expected = relakit.attention(query, key, value, is_causal=True, enable_gqa=True)
    cache = relakit.KeyValueCache()
    for i in range(9):
        keys, values = cache.append(key[:, :, i : i + 1], value[:, :, i : i + 1])
        output = relakit.attention(
            query[:, :, i : i + 1],
            keys,
            values,
            is_causal=True,
            align="lower_right",
            enable_gqa=True,
            backend="native",
        )
        torch.testing.assert_close(output, expected[:, :, i : i + 1], atol=1e-5, rtol=1e-4)


def test_what_does_not_fit_is_named() -> None:
    cache = relakit.KeyValueCache()
    key, value = torch.randn(2, 1, 2, 4, 8)
    cache.append(key, value)
    with pytest.raises(ValueError, match=r"key must be like those in the cache.* \(3, 2, 4, 8\)"):
        cache.append(key.expand(3, 2, 4, 8), value)
    with pytest.raises(ValueError, match=r"value must be like those in the cache.*bfloat16"):
        cache.append(key, value.bfloat16())
    with pytest.raises(ValueError, match="same number of positions, got 4 and 3"):
        cache.append(key, value[:, :, :3])
    with pytest.raises(ValueError, match="length must be between 0 and 4, got 5"):
        cache.truncate(5)
    with pytest.raises(ValueError, match="capacity must be at least 1, got 0"):
        relakit.KeyValueCache(0)
    with torch.enable_grad(), pytest.raises(ValueError, match=r"inside torch\.no_grad\(\)"):
        cache.append(key.clone().requires_grad_(), value)
    assert len(cache) == 4
    module = relakit.MultiheadAttention(8, 2)
    with pytest.raises(TypeError, match="cache must be a KeyValueCache, got dict"):
        module(key[0], key[0], key[0], cache={})
    with pytest.raises(ValueError, match="kv_heads must divide num_heads, got kv_heads=3 and"):
        relakit.MultiheadAttention(32, 4, kv_heads=3)
    with pytest.raises(ValueError, match="kv_heads=2 and add_zero_attn=True do not go together"):
        relakit.MultiheadAttention(32, 4, kv_heads=2, add_zero_attn=True)
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        relakit.MultiheadAttention(32, 4, window=0)

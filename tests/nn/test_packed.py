"""Jagged tensors without padding against the same sequences one by one, and against padding."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.bias import causal_upper_left

import relakit
from relakit.nn import fused, nested, packed

if fused.connected_extension() is None:
    pytest.skip("no C++ extension", allow_module_level=True)

LENGTHS, KEY_LENGTHS = (5, 1, 70, 12), (9, 3, 20, 130)


@pytest.fixture
def _no_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("padded")

    monkeypatch.setattr(nested, "_padded", refuse)


def jagged(parts: list[Tensor]) -> Tensor:
    return torch.nested.as_nested_tensor(parts, layout=torch.jagged)


def sequences(lengths: tuple[int, ...], size: int = 32) -> list[Tensor]:
    return [torch.randn(n, size, requires_grad=True) for n in lengths]


@pytest.mark.usefixtures("_no_padding")
@pytest.mark.parametrize("options", [{}, {"kv_heads": 2}, {"window": 4}], ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("attention", ["rela-g", "relu"])
def test_self_attention(options: dict[str, int], causal: bool, attention: str) -> None:
    module = relakit.MultiheadAttention(32, 4, batch_first=True, attention=attention, **options)
    parts = sequences(LENGTHS)
    x = jagged(parts)
    mask = causal_upper_left(70, 70) if causal else None
    output, weights = module(x, x, x, need_weights=False, attn_mask=mask)
    assert weights is None
    single = []
    for part in parts:
        own = torch.ones(len(part), len(part), dtype=torch.bool).triu(1) if causal else None
        single.append(module(part, part, part, attn_mask=own)[0])
    torch.testing.assert_close(list(output.unbind()), single, atol=1e-4, rtol=1e-4)
    (output + x).values().square().sum().backward()  # lengths are shared, so they can be added
    gradients = [part.grad for part in parts]
    expected = torch.autograd.grad(
        sum((y + part).square().sum() for y, part in zip(single, parts, strict=True)), parts
    )
    for actual, wanted in zip(gradients, expected, strict=True):
        torch.testing.assert_close(actual, wanted, atol=1e-2, rtol=1e-3)


@pytest.mark.usefixtures("_no_padding")
def test_cross_attention() -> None:
    module = relakit.MultiheadAttention(32, 4, batch_first=True)
    query, key = sequences(LENGTHS), sequences(KEY_LENGTHS)
    memory = jagged(key)
    output, _ = module(jagged(query), memory, memory, need_weights=False)
    expected = [module(q, k, k)[0] for q, k in zip(query, key, strict=True)]
    torch.testing.assert_close(list(output.unbind()), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("attention", ["softmax", "rela-g-layernorm"])
def test_what_the_kernels_do_not_do_is_padded(attention: str) -> None:
    module = relakit.MultiheadAttention(32, 4, batch_first=True, attention=attention)
    parts = sequences(LENGTHS)
    x = jagged(parts)
    output, _ = module(x, x, x, need_weights=False)
    expected = [module(part, part, part)[0] for part in parts]
    torch.testing.assert_close(list(output.unbind()), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("case", ["softmax", "layer norm", "length", "hook", "backend", "capture"])
def test_what_is_padded_is_projected_once(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("projected for nothing")

    kinds = {
        "softmax": "softmax",
        "layer norm": "rela-g-layernorm",
        "length": relakit.AttentionSpec(length_exponent=1.0),
    }
    module = relakit.MultiheadAttention(
        32, 4, batch_first=True, attention=kinds.get(case, "rela-g")
    )
    if case == "hook":
        module.norm.register_forward_hook(lambda *_: None)
    if case == "backend":
        module.backend = "reference"
    monkeypatch.setattr(packed, "project_linearly", refuse)
    x = jagged(sequences(LENGTHS))
    with relakit.capture(nn.Sequential(module)) if case == "capture" else nullcontext():
        output, _ = module(x, x, x, need_weights=False)
    assert output.is_nested


def test_masks_are_still_honoured() -> None:
    module = relakit.MultiheadAttention(32, 4, batch_first=True)
    parts = sequences(LENGTHS)
    x = jagged(parts)
    hidden = torch.rand(70, 70) < 0.3
    output, _ = module(x, x, x, need_weights=False, attn_mask=hidden)
    expected = [module(p, p, p, attn_mask=hidden[: len(p), : len(p)])[0] for p in parts]
    torch.testing.assert_close(list(output.unbind()), expected, atol=1e-4, rtol=1e-4)
    with pytest.raises(ValueError, match=r"causal_upper_left\(9, 9\), made for 9 queries"):
        module(x, x, x, need_weights=False, attn_mask=causal_upper_left(9, 9))
    with pytest.raises(ValueError, match="is_causal=True is a hint about attn_mask"):
        module(x, x, x, need_weights=False, is_causal=True)


def test_a_causal_hint_replaces_the_mask() -> None:
    module = relakit.MultiheadAttention(32, 4, batch_first=True)
    parts = sequences(LENGTHS)
    x = jagged(parts)
    mask = nn.Transformer.generate_square_subsequent_mask(70)
    output, _ = module(x, x, x, need_weights=False, attn_mask=mask, is_causal=True)
    expected, _ = module(x, x, x, need_weights=False, attn_mask=mask)
    torch.testing.assert_close(output.values(), expected.values(), atol=1e-4, rtol=1e-4)

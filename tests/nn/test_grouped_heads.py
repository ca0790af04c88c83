"""Shared heads of keys and values against a module that has each of them several times."""

import pytest
import torch
from torch import Tensor, nn

import relakit


def repeated(weight: Tensor, group: int, head_dim: int) -> Tensor:
    return weight.unflatten(0, (-1, head_dim)).repeat_interleave(group, 0).flatten(0, 1)


def twin(module: relakit.MultiheadAttention, kind: type[nn.MultiheadAttention]) -> nn.Module:
    """With as many heads of keys as of queries, and the same results."""
    size, group = module.embed_dim, module.num_heads // module.kv_heads
    other = kind(size, module.num_heads, kdim=module.kdim, vdim=module.vdim, batch_first=True)
    wanted = {name: x.detach().clone() for name, x in module.state_dict().items()}
    for name in ("k_proj_weight", "v_proj_weight"):
        wanted[name] = repeated(wanted[name], group, module.head_dim)
    query, *rest = wanted["in_proj_bias"].split([size, *[module.kv_heads * module.head_dim] * 2])
    wanted["in_proj_bias"] = torch.cat(
        [query, *(repeated(x, group, module.head_dim) for x in rest)]
    )
    if other.in_proj_weight is not None:
        names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        wanted["in_proj_weight"] = torch.cat([wanted.pop(name) for name in names])
    other.load_state_dict(wanted)
    return other


@pytest.mark.parametrize("attention", ["softmax", "rela-g", "rela-g-leaky"])
@pytest.mark.parametrize("kdim", [None, 20])
@pytest.mark.parametrize("backend", [None, "reference"])
def test_equals_repeated_heads(attention: str, kdim: int | None, backend: str | None) -> None:
    module = relakit.MultiheadAttention(
        32, 8, kdim=kdim, vdim=kdim, batch_first=True, attention=attention, kv_heads=2
    )
    nn.init.normal_(module.in_proj_bias)
    kind = nn.MultiheadAttention
    if attention != "softmax":

        def kind(*args: object, **options: object) -> nn.Module:
            return relakit.MultiheadAttention(*args, attention=attention, **options)

    other = twin(module, kind)
    module.backend = backend
    query = torch.randn(2, 11, 32, requires_grad=True)
    key = torch.randn(2, 17, kdim or 32, requires_grad=True)
    hidden = torch.rand(11, 17) < 0.3
    results = []
    for each in (module, other):
        output, weights = each(query, key, key, attn_mask=hidden)
        direction = torch.linspace(-1, 1, 32)
        gradients = torch.autograd.grad((output * direction).sum(), (query, key))
        without, _ = each(query, key, key, attn_mask=hidden, need_weights=False)
        results.append((output, weights, *gradients, without))
    for x, y in zip(*results, strict=True):
        torch.testing.assert_close(x, y, atol=1e-4, rtol=1e-3)


def test_a_window_is_a_mask(tmp_path: object) -> None:
    local = relakit.MultiheadAttention(32, 4, batch_first=True, window=3, kv_heads=2)
    wide = relakit.MultiheadAttention(32, 4, batch_first=True, kv_heads=2)
    wide.load_state_dict(local.state_dict())
    x = torch.randn(2, 15, 32)
    places = torch.arange(15)
    hidden = (places[:, None] - places).abs() >= 3
    for need_weights in (False, True):
        torch.testing.assert_close(
            local(x, x, x, need_weights=need_weights),
            wide(x, x, x, attn_mask=hidden, need_weights=need_weights),
            atol=1e-5,
            rtol=1e-4,
        )
    causal = nn.Transformer.generate_square_subsequent_mask(15)
    output, _ = local(x, x, x, attn_mask=causal, is_causal=True, need_weights=False)
    both = hidden | (causal != 0)
    torch.testing.assert_close(output, wide(x, x, x, attn_mask=both)[0], atol=1e-5, rtol=1e-4)


def test_conversion_keeps_window_and_heads() -> None:
    module = relakit.MultiheadAttention(32, 4, window=3, kv_heads=2)
    again = relakit.MultiheadAttention.from_torch(module, "softmax")
    assert (again.window, again.kv_heads) == (3, 2)
    assert "kv_heads=2, window=3" in repr(again)
    assert relakit.MultiheadAttention.from_torch(nn.MultiheadAttention(32, 4)).kv_heads == 4

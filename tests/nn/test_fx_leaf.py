"""`torch.fx.symbolic_trace` keeps our modules and our function whole."""

import copy
import pickle

import pytest
import torch
from torch import Tensor, fx, nn

import relakit

EMBED, HEADS = 12, 4


class Block(nn.Module):
    """A block as users write it, with PyTorch's module."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(EMBED)
        self.attention = nn.MultiheadAttention(EMBED, HEADS, batch_first=True)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        y = self.norm(x)
        return x + self.attention(y, y, y, key_padding_mask=padding, need_weights=False)[0]


def inputs() -> tuple[Tensor, Tensor]:
    return torch.randn(2, 5, EMBED), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])


@pytest.mark.parametrize("name", ["softmax", "rela-g"])
def test_a_converted_model_has_the_graph_of_the_original(name: str) -> None:
    block = Block()
    expected_code = fx.symbolic_trace(block).code
    relakit.convert_attention(block, name)
    traced = fx.symbolic_trace(block)
    assert traced.code == expected_code
    x, padding = inputs()
    torch.testing.assert_close(traced(x, padding), block(x, padding))
    assert type(traced.attention) is relakit.MultiheadAttention


def test_copies_stay_leaves_and_keep_their_class() -> None:
    block = Block()
    relakit.convert_attention(block)
    for twin in (copy.deepcopy(block.attention), pickle.loads(pickle.dumps(block.attention))):
        assert type(twin) is relakit.MultiheadAttention
        assert fx.Tracer().is_leaf_module(twin, "attention")
    assert relakit.MultiheadAttention.__module__ == "relakit.nn.multihead"


def test_attention_over_heads_is_a_leaf() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.core = relakit.AttentionCore(HEADS, EMBED // HEADS)

        def forward(self, x: Tensor) -> Tensor:
            heads = x.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            found: Tensor = self.core(heads, heads, heads, is_causal=True)
            return found

    model = Own()
    traced = fx.symbolic_trace(model)
    assert [n.target for n in traced.graph.nodes if n.op == "call_module"] == ["core"]
    x, _ = inputs()
    torch.testing.assert_close(traced(x), model(x))


class OwnAttention(nn.Module):
    """The function and a norm, as in docs/conversion.md."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = relakit.GatedRMSNorm(EMBED)

    def forward(self, x: Tensor) -> Tensor:
        heads = x.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        both = relakit.attention(heads, heads, heads, is_causal=True, need_weights=True)
        return self.norm(both[0].transpose(1, 2).flatten(2)) + both[1].sum()


def test_the_function_and_the_norms() -> None:
    model = OwnAttention()
    traced = fx.symbolic_trace(model)
    assert [n.target for n in traced.graph.nodes if n.op == "call_module"] == ["norm"]
    assert relakit.attention in [n.target for n in traced.graph.nodes]
    x = torch.randn(2, 5, EMBED)
    torch.testing.assert_close(traced(x), model(x))

"""Teaching `convert_attention` a class of one's own."""

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import relakit
from relakit.nn import adapters


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    before = dict(adapters._adapters)
    yield
    adapters._adapters.clear()
    adapters._adapters.update(before)


class OwnAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def heads(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(y.unflatten(-1, (4, 8)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))

    def forward(self, x: Tensor) -> Tensor:
        mixed = F.scaled_dot_product_attention(*self.heads(x), is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(-2))


class Renamed(OwnAttention):
    """A subclass with the same forward."""


class ChangedAttention(OwnAttention):
    """One with another."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class OwnRela(nn.Module):
    heads = OwnAttention.heads

    def __init__(self, old: OwnAttention, attention: relakit.AttentionSpec) -> None:
        super().__init__()
        self.qkv, self.out, self.attention = old.qkv, old.out, attention
        self.core = relakit.AttentionCore(4, 8, attention)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.core(*self.heads(x), is_causal=True))


@pytest.mark.filterwarnings("error")
def test_a_class_of_ones_own() -> None:
    model = nn.Sequential(OwnAttention(), nn.Sequential(Renamed()))
    x = torch.randn(2, 9, 32)
    expected = model(x)
    with pytest.warns(UserWarning, match=r"register_attention .*: OwnAttention \(0\)"):
        assert relakit.convert_attention(model) == []
    relakit.register_attention(OwnAttention, OwnRela)
    assert relakit.convert_attention(model, "softmax", where="1.*") == ["1.0"]
    assert relakit.convert_attention(model, "softmax") == ["0"]
    torch.testing.assert_close(model(x), expected)
    assert relakit.convert_attention(model, "softmax") == []
    with pytest.raises(ValueError, match="0 is a OwnRela, which an adapter made for another"):
        relakit.convert_attention(model, "rela-g")
    relakit.register_attention(OwnRela, OwnRela)
    assert relakit.convert_attention(model, "rela-g") == ["0", "1.0"]


def test_rela_is_causal_and_normalised() -> None:
    relakit.register_attention(OwnAttention, OwnRela)
    model = nn.Sequential(OwnAttention())
    relakit.convert_attention(model)
    x = torch.randn(1, 9, 32)
    later = x.clone()
    later[:, 5:] += 1
    torch.testing.assert_close(model(later)[:, :5], model(x)[:, :5])
    mixed = model[0].core(*model[0].heads(x), is_causal=True)
    plain = relakit.attention(*model[0].heads(x), is_causal=True)
    norm = model[0].core.norm
    torch.testing.assert_close(mixed, norm(plain.transpose(1, 2).flatten(-2)))


def test_a_forward_of_its_own_is_not_dropped() -> None:
    relakit.register_attention(OwnAttention, OwnRela)
    model = nn.Sequential(OwnAttention(), ChangedAttention())
    with pytest.warns(
        UserWarning, match=r"some modules were passed over: .*ChangedAttention \(1\)"
    ):
        assert relakit.convert_attention(model) == ["0"]
    assert type(model[1]) is ChangedAttention


@pytest.mark.filterwarnings("error")
def test_containers_and_parts_are_not_passed_over() -> None:
    class AttentionBlock(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.MultiheadAttention(32, 4)

    assert relakit.convert_attention(nn.Sequential(AttentionBlock())) == ["0.inner"]


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(TypeError, match="kind must be a class of modules, got 'Own'"):
        relakit.register_attention("Own", OwnRela)
    with pytest.raises(TypeError, match="adapter must be a function of a module and a spec"):
        relakit.register_attention(OwnAttention, None)
    with pytest.raises(ValueError, match="is converted already"):
        relakit.register_attention(nn.MultiheadAttention, OwnRela)
    relakit.register_attention(OwnAttention, lambda module, attention: None)
    with pytest.raises(TypeError, match="for OwnAttention must return a module, got NoneType"):
        relakit.convert_attention(nn.Sequential(OwnAttention()))
    with pytest.raises(ValueError, match="itself an attention module, OwnAttention"):
        relakit.convert_attention(OwnAttention())

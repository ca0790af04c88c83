"""Vision transformers of timm, converted: softmax gives timm's results, ReLA trains."""

from pathlib import Path
from typing import Any

import pytest
import torch
from timm_without_torchvision import timm_or_skip
from torch import nn

import relakit

timm = timm_or_skip()

SMALL = {"img_size": 32, "patch_size": 8, "depth": 2, "num_classes": 5}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("vit_tiny_patch16_224", {}),
    "registers": ("vit_tiny_patch16_224", {"reg_tokens": 3, "qk_norm": True}),
    "no class token": ("vit_tiny_patch16_224", {"class_token": False, "global_pool": "avg"}),
    "deit": ("deit_tiny_patch16_224", {}),
    "rope": ("vit_small_patch16_rope_224", {}),
    "eva": ("eva02_tiny_patch14_224", {}),
    "eva, bias": ("eva02_small_patch14_224", {"qkv_fused": True, "qkv_bias": True}),
}


def build(name: str) -> nn.Module:
    kind, options = MODELS[name]
    torch.manual_seed(0)
    model: nn.Module = timm.create_model(kind, **SMALL, **options)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.2)
    return model


def names(model: nn.Module) -> list[str]:
    return [f"blocks.{i}.attn" for i in range(2)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("fused", [False, True])
def test_softmax_changes_nothing(name: str, fused: bool) -> None:
    model = build(name)
    for module in model.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = fused
    image = torch.randn(2, 3, 32, 32)
    direction = torch.linspace(-1, 1, 5)

    def results() -> list[torch.Tensor]:
        output = model.eval()(image)
        return [output, *torch.autograd.grad((output * direction).sum(), model.parameters())]

    expected = results()
    before = list(model.state_dict())
    assert relakit.convert_attention(model, "softmax") == names(model)
    assert list(model.state_dict()) == before
    for x, y in zip(results(), expected, strict=True):
        torch.testing.assert_close(x, y, atol=1e-4 * float(y.abs().max() + 1), rtol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_trains_saves_and_loads(name: str, tmp_path: Path) -> None:
    model = build(name)
    kept = model.blocks[0].attn.proj.weight
    assert relakit.convert_attention(model) == names(model)
    assert model.blocks[0].attn.proj.weight is kept
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    image = torch.randn(2, 3, 32, 32)
    loss = nn.functional.cross_entropy(model.train()(image), torch.tensor([1, 3]))
    loss.backward()
    gate = model.blocks[0].attn.core.norm.gate
    assert gate.grad.abs().max() > 0
    optimizer.step()
    torch.save(model.state_dict(), tmp_path / "model.pt")
    other = build(name)
    relakit.convert_attention(other)
    other.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
    assert torch.equal(other.eval()(image), model.eval()(image))


@pytest.mark.parametrize(
    "options",
    [
        {"qk_norm": True, "scale_norm": True, "norm_layer": nn.LayerNorm, "qkv_bias": True},
        {"gated": True, "attn_head_dim": 16},
    ],
    ids=str,
)
@pytest.mark.parametrize("causal", [False, True])
def test_options_of_the_attention(options: dict[str, Any], causal: bool) -> None:
    model = nn.ModuleList([timm.layers.Attention(32, 4, **options)]).eval()
    x, mask = torch.randn(2, 9, 32), torch.rand(9, 9) < 0.7
    mask[:, 0] = True
    given = {"is_causal": True} if causal else {"attn_mask": mask}
    expected = model[0](x, **given)
    relakit.convert_attention(model, "softmax")
    torch.testing.assert_close(model[0](x, **given), expected)


def test_shared_heads_and_rotary_positions() -> None:
    attention = timm.layers.AttentionRope(
        32, 4, num_kv_heads=2, qkv_fused=False, rotate_half=True, num_prefix_tokens=2
    )
    model = nn.ModuleList([attention]).eval()
    x, rope = torch.randn(2, 9, 32), torch.randn(7, 16)
    expected = model[0](x, rope)
    relakit.convert_attention(model, "softmax")
    torch.testing.assert_close(model[0](x, rope), expected)


def test_capture_and_a_second_conversion() -> None:
    model = build("vit").eval()
    relakit.convert_attention(model)
    norm = model.blocks[1].attn.core.norm
    assert relakit.convert_attention(model) == []
    learned = relakit.AttentionSpec(threshold="learned")
    assert relakit.convert_attention(model, learned) == names(model)
    assert model.blocks[1].attn.core.norm is norm
    assert model.blocks[1].attn.core.threshold.shape == (3,)
    with torch.no_grad(), relakit.capture(model) as records:
        model(torch.randn(1, 3, 32, 32))
    assert list(records) == names(model)
    assert records["blocks.0.attn"][0].weights.shape == (1, 3, 17, 17)


def test_what_is_passed_over_is_named() -> None:
    model = timm.create_model("vit_base_patch16_siglip_224", **SMALL | {"num_classes": 0})
    with pytest.warns(UserWarning, match=r"passed over: .*AttentionPoolLatent \(attn_pool\)"):
        assert relakit.convert_attention(model) == names(model)

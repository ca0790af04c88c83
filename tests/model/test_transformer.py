"""The encoder-decoder Transformer against PyTorch's own layers, and its invariances."""

import math

import pytest
import torch
from pydantic import ValidationError
from torch import nn

import relakit
from relakit.model import ModelConfig, Transformer, sized
from relakit.model.transformer import Attention, Dropout, sinusoids

VARIANTS = list(relakit.ATTENTIONS)


def build(seed: int = 0, **changed: object) -> Transformer:
    torch.manual_seed(seed)
    fields = {
        "vocabulary": 23, "dim": 16, "heads": 4, "encoder_layers": 2, "decoder_layers": 2,
        "feed_forward": 24, "dropout": 0.0, "attention_dropout": 0.0, **changed,
    }  # fmt: skip
    return Transformer(ModelConfig.model_validate(fields))


def all_kinds(attention: str) -> dict[str, object]:
    return {f"{kind}_attention": attention for kind in ("encoder", "decoder", "cross")}


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.tensor([[5, 6, 7, 3], [8, 9, 3, 0]])
    target = torch.tensor([[2, 10, 11, 12, 13], [2, 14, 15, 0, 0]])
    return source, target


@pytest.mark.parametrize("norm_first", [False, True])
def test_softmax_equals_pytorchs_layers(norm_first: bool) -> None:
    model = build(**all_kinds("softmax"), norm_first=norm_first).double()
    # Biases and norms start at 0 and 1: give them values that matter.
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    source, target = batch()
    assert_same_states(model, torch_transformer(model), source, target)


def torch_transformer(model: Transformer) -> nn.Transformer:
    """PyTorch's Transformer with the model's weights."""
    config = model.config
    theirs = nn.Transformer(
        config.dim, config.heads, config.encoder_layers, config.decoder_layers,
        config.feed_forward, dropout=0.0, batch_first=True, norm_first=config.norm_first,
    ).double()  # fmt: skip
    theirs.encoder.norm, theirs.decoder.norm = model.encoder.norm, model.decoder.norm
    for ours, layer in zip(model.encoder.layers, theirs.encoder.layers, strict=True):
        copy_attention(ours.attention, layer.self_attn)
        copy_rest(ours, layer, [ours.attention_residual, ours.feed_forward_residual])
    for ours, layer in zip(model.decoder.layers, theirs.decoder.layers, strict=True):
        copy_attention(ours.attention, layer.self_attn)
        copy_attention(ours.cross_attention, layer.multihead_attn)
        residuals = [
            ours.attention_residual, ours.cross_attention_residual, ours.feed_forward_residual,
        ]  # fmt: skip
        copy_rest(ours, layer, residuals)
    return theirs


def copy_attention(ours: Attention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight = nn.Parameter(torch.cat([ours.query.weight, ours.key_value.weight]))
    theirs.in_proj_bias = nn.Parameter(torch.cat([ours.query.bias, ours.key_value.bias]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_rest(ours: nn.Module, theirs: nn.Module, residuals: list[nn.Module]) -> None:
    theirs.linear1, theirs.linear2 = ours.feed_forward.inner, ours.feed_forward.outer
    for number, residual in enumerate(residuals, start=1):
        setattr(theirs, f"norm{number}", residual.norm)


def assert_same_states(
    model: Transformer, theirs: nn.Transformer, source: torch.Tensor, target: torch.Tensor
) -> None:
    def embed(ids: torch.Tensor) -> torch.Tensor:
        scale = math.sqrt(model.config.dim)
        positions = sinusoids(ids.size(1), model.config.dim).double()
        return nn.functional.embedding(ids, model.embedding.weight) * scale + positions

    causal = nn.Transformer.generate_square_subsequent_mask(target.size(1)).double()
    padding = source == 0
    expected = theirs(
        embed(source), embed(target), tgt_mask=causal, tgt_is_causal=True,
        src_key_padding_mask=padding, memory_key_padding_mask=padding,
    )  # fmt: skip
    torch.testing.assert_close(model(source, target), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("attention", VARIANTS)
def test_padding_has_no_influence(attention: str) -> None:
    model = build(**all_kinds(attention)).double().eval()
    source, target = batch()
    together = model(source, target)
    alone = model(source[1:, :3], target[1:, :3])
    torch.testing.assert_close(together[1, :3], alone[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("attention", VARIANTS)
def test_later_targets_have_no_influence(attention: str) -> None:
    model = build(**all_kinds(attention)).double().eval()
    source, target = batch()
    before = model(source, target)
    target[:, 3:] = 9
    after = model(source, target)
    torch.testing.assert_close(before[:, :3], after[:, :3], rtol=0, atol=1e-12)
    assert not torch.allclose(before[0, 3:], after[0, 3:])


def test_each_kind_of_attention_is_its_own() -> None:
    model = build(encoder_attention="softmax", decoder_attention="rela-i", cross_attention="rela-g")
    kinds = {
        (module.kind, module.spec.activation, type(module.norm).__name__)
        for module in model.modules()
        if isinstance(module, Attention)
    }
    assert kinds == {
        ("encoder", "softmax", "NoneType"),
        ("decoder", "relu", "RMSNorm"),
        ("cross", "relu", "GatedRMSNorm"),
    }


def test_one_matrix_for_all_embeddings() -> None:
    model = build()
    assert sum(p.numel() == 23 * 16 for p in model.parameters()) == 1
    states = torch.randn(2, 3, 16)
    torch.testing.assert_close(model.logits(states), states @ model.embedding.weight.t())


def test_parameters_of_the_paper() -> None:
    """Table 2: a gated norm adds a gain and a gate of 512 to each of 18 attention layers."""
    with torch.device("meta"):
        counts = {
            name: sum(
                p.numel()
                for p in Transformer(
                    ModelConfig.model_validate(
                        {"vocabulary": 32_000, **sized("base"), **all_kinds(name)}
                    )
                ).parameters()
            )
            for name in ("softmax", "rela-g")
        }
    assert counts["rela-g"] - counts["softmax"] == 18 * 2 * 512
    # 6 x (4 d² + 8 d²) + 6 x (8 d² + 8 d²), their biases and LayerNorms, and the embeddings.
    d = 512
    encoder = 12 * d * d + 4 * d + 5 * d + 4 * d
    decoder = 16 * d * d + 8 * d + 5 * d + 6 * d
    assert counts["softmax"] == 6 * (encoder + decoder) + 32_000 * d


@pytest.mark.parametrize("attention", ["softmax", "rela-g"])
def test_bfloat16_is_close(attention: str) -> None:
    model = build(**all_kinds(attention))
    source, target = batch()
    exact = model(source, target)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = model(source, target)
    rounded.float().sum().backward()
    assert (exact - rounded).abs().max() < 0.1 * exact.abs().max()


def test_positions_grow() -> None:
    model = build().eval()
    source = torch.randint(4, 23, (1, 300))
    assert model(source, source).shape == (1, 300, 16)
    assert torch.equal(model.embedding.position_vectors(300), sinusoids(300, 16))
    assert not any("position" in name for name in model.state_dict())


def test_sinusoids_by_hand() -> None:
    vectors = sinusoids(4, 6)
    for position in range(4):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            assert vectors[position, i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert vectors[position, 3 + i].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_dropout() -> None:
    torch.manual_seed(1)
    dropout = Dropout(0.3)
    x = torch.ones(501, 403, requires_grad=True)
    y = dropout(x)
    share = (y == 0).float().mean().item()
    assert share == pytest.approx(0.3, abs=0.005)
    assert y.mean().item() == pytest.approx(1.0, abs=0.01)
    assert set(y.unique().tolist()) == {0.0, y.max().item()}
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert dropout(x.bfloat16()).dtype == torch.bfloat16
    assert dropout.eval()(x) is x


def test_dropout_is_used() -> None:
    source, target = batch()
    for changed in ({"dropout": 0.5}, {"attention_dropout": 0.5}):
        model = build(**changed)
        assert not torch.equal(model(source, target), model(source, target))
        model.eval()
        assert torch.equal(model(source, target), model(source, target))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"heads": 3}, "heads must divide dim, got heads=3 and dim=16"),
        ({"dim": 15, "heads": 5}, "dim must be even"),
        ({"encoder_attention": "softmx"}, "unknown attention 'softmx'; choose one of softmax"),
        ({"dropout": 1.0}, "less than 1"),
        ({"layers": 2}, "Extra inputs are not permitted"),
    ],
)
def test_bad_settings(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        build(**changed)


def test_unknown_size() -> None:
    with pytest.raises(ValueError, match="unknown size 'huge'; choose one of tiny, small, base"):
        sized("huge")

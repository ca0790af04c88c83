"""Attentions as recipes and config.json write them, and that every field of a table matters."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from model_folders import write_model
from torch import Tensor, nn

from relakit.model import ModelConfig, load_model
from relakit.model.attention_setting import FIELDS, read_attention, write_attention
from relakit.model.transformer import Attention
from relakit.nn.variants import ATTENTIONS, AttentionSpec

if sys.version_info >= (3, 11):
    import tomllib as toml
else:
    import tomli as toml

TABLES: list[dict[str, Any]] = [
    {"threshold": 0.3},
    {"threshold": "learned"},
    {"power": 2},
    {"power": 1.5},
    {"length_exponent": 1.0},
    {"threshold": "learned", "power": 2, "length_exponent": 0.5},
    {"gate": False, "power": 2},
    {"norm": "none", "threshold": -0.2},
    {"norm": "layer", "power": 2},
    {"norm_eps": 0.5},
    {"activation": "gelu", "threshold": 0.1},
    {"activation": "softpick", "norm": "none"},
    {"activation": "sigmoid", "gate": False},
]


def test_names_and_tables() -> None:
    assert read_attention("rela-i") == "rela-i"
    assert read_attention({}) == "rela-g"
    assert read_attention({"activation": "softmax", "norm": "none"}) == "softmax"
    assert read_attention(AttentionSpec(power=2)) == AttentionSpec(power=2)
    assert read_attention({"threshold": "learned"}) == AttentionSpec(threshold="learned")


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_what_is_written_can_be_read(table: dict[str, Any]) -> None:
    setting = read_attention(table)
    written = write_attention(setting)
    assert read_attention(toml.loads(f"attention = {written}")["attention"]) == setting
    config = ModelConfig.model_validate({"vocabulary": 9, "cross_attention": table})
    assert config.attention("cross") == written
    assert config.attention_spec("cross") == AttentionSpec(**table)
    again = json.loads(json.dumps(config.model_dump()))
    assert ModelConfig.model_validate(again) == config


def test_the_shortest_table_is_written() -> None:
    spec = AttentionSpec(threshold="learned", power=2.0)
    assert write_attention(spec) == '{ activation = "relu", threshold = "learned", power = 2.0 }'
    assert write_attention("rela-i") == "rela-i"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("softmx", "unknown attention 'softmx'; choose one of softmax, .* or give a table with"),
        (3, "an attention is a name or a table, got 3"),
        ({"treshold": 1}, r"unknown key treshold \(did you mean threshold\?\); known are activ"),
        ({"norm": "rsm"}, "unknown norm 'rsm'; choose one of none, rms, layer"),
        ({"activation": "relo"}, "unknown activation 'relo'; choose one of softmax"),
        ({"threshold": "learnt"}, "threshold must be a number or 'learned', got 'learnt'"),
        ({"power": "2"}, "power must be a number, got '2'"),
        ({"power": 0}, "power must be a finite number above 0, got 0"),
        ({"gate": "yes"}, "gate must be True, False or None, got 'yes'"),
        ({"activation": "softmax", "power": 2}, "power=2 has no meaning for activation 'softmax'"),
    ],
)  # fmt: skip
def test_bad_settings(setting: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_attention(setting)


def by_formula(module: Attention, x: Tensor, valid: Tensor, table: dict[str, Any]) -> Tensor:
    """Self-attention as docs/attention.md has it: ``[positions, dim]``, one sentence."""
    spec = {"activation": "relu", "norm": "rms", "gate": True, "norm_eps": 1e-8, "power": 1.0,
            "length_exponent": 0.0, "threshold": 0.0, **table}  # fmt: skip
    if spec["norm"] == "none":
        spec["gate"] = False
    key, value = module.key_value(x).chunk(2, dim=1)
    mixed = []
    for head, (q, k, v) in enumerate(
        zip(*(t.chunk(module.heads, dim=1) for t in (module.query(x), key, value)), strict=True)
    ):
        k, v = k[valid], v[valid]
        scores = q @ k.T / math.sqrt(q.size(1))
        threshold = spec["threshold"]
        scores = scores - (module.threshold[head] if threshold == "learned" else threshold)
        if spec["activation"] == "relu":
            weights = scores.clamp(min=0) ** spec["power"]
        elif spec["activation"] == "gelu":
            weights = scores * (1 + torch.erf(scores / math.sqrt(2))) / 2
        elif spec["activation"] == "sigmoid":
            weights = 1 / (1 + (math.log(len(k)) - scores).exp())
        else:
            assert spec["activation"] == "softpick"
            weights = (scores.exp() - 1).clamp(min=0) / (scores.exp() - 1).abs().sum(
                1, keepdim=True
            )
        mixed.append(weights / len(k) ** spec["length_exponent"] @ v)
    z = torch.cat(mixed, dim=1)
    normalised = z
    if spec["norm"] != "none":
        centred = z - z.mean(1, keepdim=True) if spec["norm"] == "layer" else z
        scale = (centred.square().mean(1, keepdim=True) + spec["norm_eps"]).sqrt()
        normalised = centred / scale * module.norm.weight + getattr(module.norm, "bias", 0.0)
    if spec["gate"]:
        normalised = normalised / (1 + (-module.norm.gate * z).exp())
    result: Tensor = module.output(normalised)
    return result


def build(table: dict[str, Any] | str) -> Attention:
    config = {"vocabulary": 5, "dim": 12, "heads": 3, "encoder_attention": table}
    module = Attention(ModelConfig.model_validate(config), "encoder").double().eval()
    torch.manual_seed(0)
    for name, parameter in sorted(module.named_parameters()):
        if name != "threshold":  # last, so that all others are those of every other module
            nn.init.normal_(parameter, std=0.6)
    if isinstance(module.threshold, Tensor):
        nn.init.normal_(module.threshold, std=0.4)
    return module


@torch.no_grad()
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_every_field_reaches_the_formula(table: dict[str, Any]) -> None:
    module, usual = build(table), build("rela-g")
    torch.manual_seed(1)
    x = torch.randn(7, 12, dtype=torch.float64)
    valid = torch.tensor([True] * 5 + [False] * 2)
    found = module(x[None], x[None], valid[None, None, None])[0]
    torch.testing.assert_close(found, by_formula(module, x, valid, table), rtol=1e-6, atol=1e-6)
    assert not torch.allclose(found, usual(x[None], x[None], valid[None, None, None])[0])


def test_the_gain_starts_as_the_table_says() -> None:
    for start, bound in (("xavier", math.sqrt(3 / 64)), ("xavier-head", math.sqrt(3 / 16))):
        table = {"gain_init": start, "gate": False}
        config = ModelConfig.model_validate(
            {"vocabulary": 5, "dim": 64, "heads": 4, "encoder_attention": table}
        )
        gain = Attention(config, "encoder").norm.weight
        assert 0.8 * bound < gain.abs().max() <= bound


def test_a_learned_threshold_is_a_parameter_that_starts_at_zero() -> None:
    config = {"vocabulary": 5, "dim": 12, "heads": 3, "encoder_attention": {"threshold": "learned"}}
    module = Attention(ModelConfig.model_validate(config), "encoder")
    assert torch.equal(module.state_dict()["threshold"], torch.zeros(3))
    assert "threshold" not in build({"threshold": 0.3}).state_dict()


def test_all_fields_are_tried() -> None:
    assert {key for table in TABLES for key in table} | {"gain_init"} == set(FIELDS)


def test_old_model_directories_have_names(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert (content["version"], content["model"]["cross_attention"]) == (1, "rela-g")
    model, _ = load_model(folder)
    assert model.config.attention_spec("cross") == ATTENTIONS["rela-g"]

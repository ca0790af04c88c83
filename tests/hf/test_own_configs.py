"""Models that were made from one config object do not know of each other's conversion."""

from pathlib import Path

import pytest
import torch
from tiny_hf_models import ARCHITECTURES, logits_of, tiny_clip

import relakit.hf
from relakit.hf.own_configs import own_configs


@pytest.mark.parametrize("name", ["bert", "llama", "marian", "t5", "vit"])
def test_a_model_from_the_same_config_stays_as_it_is(name: str, tmp_path: Path) -> None:
    inputs = ARCHITECTURES[name].inputs()
    one = ARCHITECTURES[name].build()
    config = one.config
    before = config.to_dict()
    other = type(one)(config).eval()
    expected = logits_of(other, inputs)

    relakit.hf.convert(one)
    assert config.to_dict() == before
    assert other.config is config
    assert config._attn_implementation != "rela"
    assert torch.equal(logits_of(other, inputs), expected)

    relakit.hf.convert(other, "softmax")
    one.save_pretrained(tmp_path)
    loaded = relakit.hf.from_pretrained(tmp_path).eval()
    assert torch.equal(logits_of(loaded, inputs), logits_of(one, inputs))


def test_a_model_from_the_config_of_a_converted_one() -> None:
    one = ARCHITECTURES["llama"].build()
    relakit.hf.convert(one)
    other = type(one)(one.config)
    relakit.hf.convert(other, "softmax")
    assert [group["attention"] for group in one.config.relakit_attention] == ["rela-g"]
    assert other.config.relakit_attention == []


def test_a_part_is_converted_alone() -> None:
    model = ARCHITECTURES["marian"].build()
    inputs = ARCHITECTURES["marian"].inputs()
    assert len(relakit.hf.convert(model.get_encoder())) == 2
    assert logits_of(model, inputs).isfinite().all()


def test_configs_within_configs_stay_so() -> None:
    model = tiny_clip()
    config = model.config
    own_configs(model)
    assert model.config is not config
    assert model.config.to_dict() == config.to_dict()
    assert model.text_model.config is model.config.text_config
    assert model.vision_model.config is model.config.vision_config
    attention = model.text_model.encoder.layers[0].self_attn
    assert attention.config is model.config.text_config
    assert attention.config is not config.text_config

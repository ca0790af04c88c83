"""Loading converted models: overrides of the config, parts of a model, weights that do not fit."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_hf_models import ARCHITECTURES, clip_inputs, logits_of, tiny_clip, tiny_sam
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    CLIPForImageClassification,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    CLIPVisionModel,
)

import relakit.hf
from relakit.hf.model_folder import load_model


def trained(model: Any) -> Any:
    """As if training had changed what conversion added."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".rela." in name:
                parameter.uniform_(0.1, 0.9, generator=generator)
    return model


def saved(name: str, folder: Path, attention: Any = "rela-g") -> Any:
    model = ARCHITECTURES[name].build()
    relakit.hf.convert(model, attention)
    trained(model).save_pretrained(folder)
    return model


def saved_clip(folder: Path) -> Any:
    model = tiny_clip()
    relakit.hf.convert(model)
    trained(model).save_pretrained(folder)
    return model


def change_choice(folder: Path, groups: list[Any]) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["relakit_attention"] = groups
    (folder / "config.json").write_text(json.dumps(config))


def test_arguments_change_the_config(tmp_path: Path) -> None:
    model = saved("bert", tmp_path)
    loaded = relakit.hf.from_pretrained(
        tmp_path,
        AutoModelForSequenceClassification,
        num_labels=5,
        hidden_dropout_prob=0.3,
        dtype=torch.bfloat16,
        local_files_only=True,
    )
    assert loaded.config.num_labels == 5
    assert loaded.classifier.out_features == 5
    assert loaded.bert.embeddings.dropout.p == 0.3
    assert loaded.dtype == torch.bfloat16
    name = "bert.encoder.layer.1.attention.self.rela.norm.gate"
    assert torch.equal(loaded.get_parameter(name), model.get_parameter(name).bfloat16())


def test_the_precision_may_be_that_of_the_weights(tmp_path: Path) -> None:
    saved("bert", tmp_path)
    assert relakit.hf.from_pretrained(tmp_path, dtype="auto").dtype == torch.float32


@pytest.mark.parametrize("given", ["folder", "file", "object"])
def test_a_config_of_its_own(given: str, tmp_path: Path) -> None:
    model, inputs = saved("llama", tmp_path), ARCHITECTURES["llama"].inputs()
    config = {
        "folder": str(tmp_path),
        "file": tmp_path / "config.json",
        "object": AutoConfig.from_pretrained(tmp_path),
    }[given]
    loaded = relakit.hf.from_pretrained(tmp_path, config=config)
    assert torch.equal(logits_of(loaded.eval(), inputs), logits_of(model, inputs))


def test_arguments_that_nobody_knows_are_refused(tmp_path: Path) -> None:
    saved("llama", tmp_path)
    with pytest.raises(TypeError, match="number_of_labels"):
        relakit.hf.from_pretrained(tmp_path, number_of_labels=5)


def test_the_name_of_another_attention_is_refused(tmp_path: Path) -> None:
    saved("llama", tmp_path)
    for name in (None, "rela"):
        loaded = relakit.hf.from_pretrained(tmp_path, attn_implementation=name)
        assert loaded.config._attn_implementation == "rela"
    with pytest.raises(ValueError, match=r"has attn_implementation='rela', got 'sdpa'; leave it"):
        relakit.hf.from_pretrained(tmp_path, attn_implementation="sdpa")


@pytest.mark.parametrize("attention", ["softmax", "rela-i"])
@pytest.mark.parametrize("model_class", [None, AutoModel])
def test_weights_of_another_conversion_are_refused(
    attention: str, model_class: Any, tmp_path: Path
) -> None:
    model = saved("llama", tmp_path)
    modules = model.config.relakit_attention[0]["modules"]
    groups = [] if attention == "softmax" else [{"attention": attention, "modules": modules}]
    change_choice(tmp_path, groups)
    count = 4 if attention == "softmax" else 2  # a gain and a gate, or the gate alone
    with pytest.raises(ValueError, match=rf"has weights for {count} .* does not have, .*norm.gate"):
        relakit.hf.from_pretrained(tmp_path, model_class)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"architectures": ["BertTokenizer"]}, "BertTokenizer is no model class of transformers"),
        ({"architectures": ["logging"]}, "logging is no model class of transformers"),
        ({"architectures": ["Nothing"]}, "names the class 'Nothing', which transformers does not"),
        ({"architectures": None}, "names the class '', which transformers does not"),
        # Errors of all kinds, from transformers and from Python
        ({"hidden_size": "many"}, "^the config of .* cannot be read: "),
        ({"id2label": [1]}, "^the config of .* cannot be read: "),
        ({"dtype": "float12"}, "^the config of .* cannot be read: "),
        ({"hidden_size": 0}, "cannot be loaded: "),
        ({"num_attention_heads": 0}, "cannot be loaded: "),
        ({"hidden_act": "none"}, "cannot be loaded: "),
    ],
    ids=str,
)
def test_a_broken_config(changes: dict[str, Any], problem: str, tmp_path: Path) -> None:
    saved("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **changes}))
    with pytest.raises(ValueError, match=problem):
        load_model(tmp_path)


def test_models_with_configs_inside(tmp_path: Path) -> None:
    model = saved_clip(tmp_path)
    loaded, info = relakit.hf.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    expected = model(**clip_inputs()).logits_per_image
    torch.testing.assert_close(loaded.eval()(**clip_inputs()).logits_per_image, expected)
    assert loaded.config.relakit_attention == model.config.relakit_attention


def test_attention_beside_the_interface_stays_as_it_was(tmp_path: Path) -> None:
    model = tiny_sam()
    with pytest.warns(UserWarning, match="stays as it is: SamVisionSdpaAttention"):
        relakit.hf.convert(model)
    trained(model).save_pretrained(tmp_path)
    loaded = relakit.hf.from_pretrained(tmp_path).eval()
    image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(5))
    inputs = {"pixel_values": image, "input_points": torch.tensor([[[[9.0, 4.0]]]])}
    torch.testing.assert_close(loaded(**inputs).pred_masks, model(**inputs).pred_masks)


@pytest.mark.parametrize(
    "model_class",
    [CLIPTextModel, CLIPTextModelWithProjection, CLIPVisionModel, CLIPForImageClassification],
)
def test_a_part_of_a_model(model_class: Any, tmp_path: Path) -> None:
    whole = saved_clip(tmp_path / "whole")
    part = relakit.hf.from_pretrained(tmp_path / "whole", model_class).eval()
    assert type(part) is model_class
    name = part.main_input_name
    inputs = {name: clip_inputs()[name]}
    output = part(**inputs)
    if model_class is CLIPTextModelWithProjection:
        text = whole.text_model(**inputs).pooler_output
        torch.testing.assert_close(output.text_embeds, whole.text_projection(text))
    elif model_class is CLIPForImageClassification:
        ours, theirs = part.vision_model(**inputs), whole.vision_model(**inputs)
        torch.testing.assert_close(ours.pooler_output, theirs.pooler_output)
    else:
        inner = whole.text_model if model_class is CLIPTextModel else whole.vision_model
        torch.testing.assert_close(output.pooler_output, inner(**inputs).pooler_output)
    part.save_pretrained(tmp_path / "part")
    again = relakit.hf.from_pretrained(tmp_path / "part").eval()
    torch.testing.assert_close(again(**inputs)[0], output[0])


def test_arguments_change_the_config_of_a_part(tmp_path: Path) -> None:
    model = saved_clip(tmp_path)
    part = relakit.hf.from_pretrained(tmp_path, CLIPTextModel, attention_dropout=0.3)
    assert part.config.attention_dropout == 0.3
    again = relakit.hf.from_pretrained(tmp_path, CLIPTextModel, config=model.config)
    assert again.config.relakit_attention == part.config.relakit_attention


def test_a_part_that_was_saved_from_within_the_whole(tmp_path: Path) -> None:
    text_model = saved_clip(tmp_path / "whole").text_model
    text_model.save_pretrained(tmp_path / "part")
    loaded = relakit.hf.from_pretrained(tmp_path / "part").eval()
    inputs = {"input_ids": clip_inputs()["input_ids"]}
    assert type(loaded) is CLIPTextModel
    torch.testing.assert_close(loaded(**inputs).pooler_output, text_model(**inputs).pooler_output)

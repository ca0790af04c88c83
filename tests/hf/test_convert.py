"""Conversion of models of transformers, saving and loading."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_hf_models import (
    ARCHITECTURES,
    NAMES,
    SEQ2SEQ,
    VOCABULARY,
    clip_inputs,
    logits_of,
    tiny_clip,
)
from torch import nn
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    BigBirdPegasusConfig,
    BigBirdPegasusModel,
    BloomConfig,
    BloomForCausalLM,
    CLIPModel,
    CLIPTextModel,
    LlamaModel,
)

import relakit
import relakit.hf
from relakit.hf.parts import head_sizes


def small(name: str) -> tuple[Any, dict[str, Any]]:
    return ARCHITECTURES[name].build(), ARCHITECTURES[name].inputs()


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_is_the_same_when_loaded(name: str, tmp_path: Path) -> None:
    model, inputs = small(name)
    names = relakit.hf.convert(model, relakit.AttentionSpec(threshold="learned"))
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if ".rela." in parameter_name:
                parameter.uniform_(0.1, 0.9)
    model.save_pretrained(tmp_path)
    loaded, info = relakit.hf.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert type(loaded) is type(model)
    assert loaded.state_dict().keys() == model.state_dict().keys()
    assert sum(".rela.threshold" in key for key in loaded.state_dict()) == len(names)
    assert torch.equal(logits_of(loaded.eval(), inputs), logits_of(model, inputs))
    loaded.save_pretrained(tmp_path / "again")
    first, second = (json.loads((tmp_path / x / "config.json").read_text()) for x in (".", "again"))
    assert first["relakit_attention"] == second["relakit_attention"]


@pytest.mark.parametrize("name", ["bert", "gpt2", "gemma2", "t5", "vit"])
def test_a_training_step_changes_what_was_added(name: str) -> None:
    model, inputs = small(name)
    relakit.hf.convert(model.train(), relakit.AttentionSpec(threshold="learned"))
    added = {n: p.detach().clone() for n, p in model.named_parameters() if ".rela." in n}
    assert {n.rpartition("rela.")[2] for n in added} == {"norm.weight", "norm.gate", "threshold"}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    logits_of(model, inputs).square().mean().backward()
    optimizer.step()
    for parameter_name, before in added.items():
        assert not torch.equal(model.get_parameter(parameter_name), before), parameter_name


def test_projections_stay_the_same_parameters() -> None:
    model, _ = small("llama")
    before = dict(model.named_parameters())
    assert relakit.hf.convert(model) == ["model.layers.0.self_attn", "model.layers.1.self_attn"]
    for name, parameter in before.items():
        assert model.get_parameter(name) is parameter


def test_where_converts_some_and_leaves_softmax_in_the_others(tmp_path: Path) -> None:
    model, inputs = small("marian")
    softmax = logits_of(model, inputs)
    assert relakit.hf.convert(model, where="*encoder_attn") == [
        "model.decoder.layers.0.encoder_attn",
        "model.decoder.layers.1.encoder_attn",
    ]
    with relakit.capture(model) as records:
        logits = logits_of(model, inputs)
    assert not torch.allclose(logits, softmax)
    for name, (record,) in records.items():
        sums = record.weights.sum(-1)[0]
        is_softmax = torch.allclose(sums, torch.ones_like(sums), atol=1e-5)
        assert is_softmax == (not name.endswith("encoder_attn"))
    model.save_pretrained(tmp_path)
    loaded = relakit.hf.from_pretrained(tmp_path).eval()
    assert torch.equal(logits_of(loaded, inputs), logits)
    assert len(relakit.hf.convert(loaded, "rela-i", where="*decoder*self_attn")) == 2
    kinds = {group["attention"] for group in loaded.config.relakit_attention}
    assert kinds == {"rela-g", "rela-i"}


def test_the_second_conversion_keeps_what_both_have() -> None:
    model, _ = small("bert")
    names = relakit.hf.convert(model)
    assert relakit.hf.convert(model) == []
    norm = model.get_submodule(names[0]).rela.norm
    assert relakit.hf.convert(model, relakit.AttentionSpec(power=2.0)) == names
    assert model.get_submodule(names[0]).rela.norm is norm
    assert relakit.hf.convert(model, "rela-i") == names
    assert model.get_submodule(names[0]).rela.norm is not norm
    assert relakit.hf.convert(model, "softmax") == names
    assert not any("rela" in key for key in model.state_dict())


def test_a_pattern_without_a_match_lists_the_modules() -> None:
    model, _ = small("llama")
    with pytest.raises(ValueError, match=r"'decoder.\*'.*the model has model.layers.0.self_attn"):
        relakit.hf.convert(model, where="decoder.*")
    with pytest.warns(UserWarning, match="where selects none"):
        assert relakit.hf.convert(model, where=lambda name, module: False) == []
    assert model.config._attn_implementation == "sdpa"


def test_a_model_outside_of_the_interface_is_refused_by_name() -> None:
    model = BloomForCausalLM(
        BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=1, n_head=4)
    )
    with pytest.raises(
        ValueError,
        match=r"BloomForCausalLM cannot be converted: .*BloomAttention \(transformer.h.0.self_att",
    ):
        relakit.hf.convert(model)
    assert not hasattr(model.config, "relakit_attention")


def test_a_model_whose_other_attention_would_misread_masks_is_refused() -> None:
    config = BigBirdPegasusConfig(**SEQ2SEQ)
    with pytest.raises(ValueError, match=r"misread the masks .*: BigBirdPegasusEncoderAttention"):
        relakit.hf.convert(BigBirdPegasusModel(config))


def test_attention_outside_of_the_interface_is_named() -> None:
    model, _ = small("bert")
    model.extra = nn.MultiheadAttention(32, 4)
    with pytest.warns(UserWarning, match=r"stays as it is: MultiheadAttention \(extra\)"):
        assert len(relakit.hf.convert(model)) == 2


def test_other_models_are_refused() -> None:
    with pytest.raises(TypeError, match=r"got Transformer; relakit.convert_attention converts"):
        relakit.hf.convert(nn.Transformer(8, 2, 1, 1, 8, batch_first=True))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"got str; relakit.convert_attention converts"):
        relakit.hf.convert("bert")  # type: ignore[arg-type]


def test_a_model_inside_another_is_named() -> None:
    model, _ = small("bert")
    with pytest.raises(TypeError, match=r"got Sequential; convert its part '1', which is one"):
        relakit.hf.convert(nn.Sequential(nn.Identity(), model))  # type: ignore[arg-type]


def test_convert_attention_and_capture_say_what_to_call() -> None:
    model, inputs = small("bert")
    with pytest.warns(UserWarning, match=r"call relakit.hf.convert\(model\)"):
        assert relakit.convert_attention(model) == []
    with (
        pytest.warns(UserWarning, match=r"call relakit.hf.convert\(model\)"),
        relakit.capture(model),
    ):
        model(**inputs)


def test_an_optimizer_that_was_there_before_is_reported() -> None:
    model, _ = small("gpt2")
    optimizer = torch.optim.AdamW(model.parameters())
    with pytest.warns(UserWarning, match="AdamW"):
        relakit.hf.convert(model)
    assert optimizer.param_groups


def test_models_with_configs_inside() -> None:
    model = tiny_clip()
    assert len(relakit.hf.convert(model)) == 4
    outputs = model(**clip_inputs())
    assert outputs.logits_per_image.isfinite().all()


def test_with_and_without_a_head(tmp_path: Path) -> None:
    model, inputs = small("llama")
    relakit.hf.convert(model)
    model.save_pretrained(tmp_path)
    base = relakit.hf.from_pretrained(tmp_path, model_class=AutoModel)
    assert type(base) is LlamaModel
    expected = model(**inputs, output_hidden_states=True).hidden_states[-1]
    assert torch.equal(base.eval()(**inputs).last_hidden_state, expected)
    base.save_pretrained(tmp_path / "base")
    again = relakit.hf.from_pretrained(tmp_path / "base", model_class=AutoModelForCausalLM)
    again.lm_head = model.lm_head
    assert torch.equal(logits_of(again.eval(), inputs), logits_of(model, inputs))


def test_what_was_not_converted_is_not_loaded(tmp_path: Path) -> None:
    model, _ = small("llama")
    model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="has no relakit_attention: it was not converted"):
        relakit.hf.from_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    names = ["model.layers.0.self_attn"]
    config["relakit_attention"] = [{"attention": "rela-g", "modules": names}]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"no weights for 2 parameters .*self_attn.rela.norm"):
        relakit.hf.from_pretrained(tmp_path)
    config["relakit_attention"] = [{"attention": "rela-x", "modules": names}]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="unknown attention 'rela-x'"):
        relakit.hf.from_pretrained(tmp_path)


def test_a_converted_model_that_transformers_loaded_alone_does_not_run(tmp_path: Path) -> None:
    model, inputs = small("llama")
    relakit.hf.convert(model)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="rela")
    with pytest.raises(ValueError, match=r"load it with relakit.hf.from_pretrained"):
        loaded(**inputs)


@pytest.mark.parametrize("model_class", [CLIPModel, CLIPTextModel])
def test_parts_that_transformers_loaded_alone_do_not_run(model_class: Any, tmp_path: Path) -> None:
    model = tiny_clip()
    relakit.hf.convert(model)
    model.save_pretrained(tmp_path)
    loaded = model_class.from_pretrained(tmp_path, attn_implementation="rela")
    inputs = clip_inputs()
    if model_class is CLIPTextModel:
        del inputs["pixel_values"]
    with pytest.raises(ValueError, match="CLIPAttention has no norm: load it with relakit"):
        loaded(**inputs)
    softmax = model_class.from_pretrained(tmp_path)
    assert softmax(**inputs)[0].isfinite().all()


def test_every_config_names_the_modules_as_its_part_does() -> None:
    model = tiny_clip()
    relakit.hf.convert(model, where="text_model.*")
    names = [f"encoder.layers.{layer}.self_attn" for layer in (0, 1)]
    assert model.config.text_config.relakit_attention == [{"attention": "rela-g", "modules": names}]
    assert model.config.vision_config.relakit_attention == []
    assert model.config.relakit_attention == [
        {"attention": "rela-g", "modules": [f"text_model.{name}" for name in names]}
    ]


def test_sizes_that_cannot_be_found_out() -> None:
    with pytest.raises(ValueError, match=r"a.b is a Linear, whose number of heads"):
        head_sizes("a.b", nn.Linear(2, 2))


def test_a_module_that_the_name_does_not_reach_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = small("bert")
    monkeypatch.setattr(type(model), "set_attn_implementation", lambda self, name: None)
    with pytest.raises(ValueError, match=r"does not reach BertSelfAttention \(bert.encoder"):
        relakit.hf.convert(model)
    assert not any("rela" in key for key in model.state_dict())


def test_a_model_can_be_loaded_in_another_precision(tmp_path: Path) -> None:
    model, inputs = small("gpt2")
    relakit.hf.convert(model)
    model.save_pretrained(tmp_path)
    loaded = relakit.hf.from_pretrained(tmp_path, dtype=torch.bfloat16).eval()
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.bfloat16}
    close = torch.cosine_similarity(
        logits_of(loaded, inputs).float().flatten(), logits_of(model, inputs).flatten(), 0
    )
    assert close > 0.99


@pytest.mark.parametrize("quantized", [torch.int8, torch.float8_e4m3fn])
@pytest.mark.parametrize("as_buffers", [False, True])
def test_what_is_added_to_quantized_attention(quantized: torch.dtype, as_buffers: bool) -> None:
    model, _ = small("llama")
    model.to(torch.bfloat16)
    for layer in model.model.layers:
        for projection in layer.self_attn.children():
            weight = projection.weight.detach().to("meta", quantized)
            del projection.weight
            if as_buffers:
                projection.register_buffer("weight", weight)
            else:
                projection.weight = nn.Parameter(weight, requires_grad=False)
    relakit.hf.convert(model)
    added = [p for name, p in model.named_parameters() if ".rela." in name]
    assert {(p.device.type, p.dtype) for p in added} == {("meta", torch.bfloat16)}


def test_what_is_added_has_the_precision_of_its_module() -> None:
    model, _ = small("llama")
    model.model.layers.to(torch.bfloat16)  # embeddings stay in float32
    relakit.hf.convert(model)
    added = [p for name, p in model.named_parameters() if ".rela." in name]
    assert {p.dtype for p in added} == {torch.bfloat16}

"""`generate` of converted models: caches, beams, padding on the left."""

from typing import Any

import pytest
import torch
from tiny_hf_models import ARCHITECTURES, PAD, VOCABULARY, names_of
from torch import Tensor
from transformers import StaticCache

import relakit.hf


def converted(name: str) -> tuple[Any, dict[str, Tensor]]:
    """In float64, so that no near tie between two tokens is decided by rounding."""
    architecture = ARCHITECTURES[name]
    model = architecture.build()
    relakit.hf.convert(model)
    inputs = architecture.inputs(padded=False)
    inputs.pop("decoder_input_ids", None)
    if architecture.kind != "speech":
        model.double()
    return model, inputs


def generate(model: Any, inputs: dict[str, Tensor], **settings: Any) -> Tensor:
    result: Tensor = model.generate(
        **inputs, do_sample=False, max_new_tokens=10, min_new_tokens=10, **settings
    )
    return result


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", names_of("decoder", "seq2seq", "speech"))
def test_a_cache_changes_nothing(name: str, beams: int) -> None:
    model, inputs = converted(name)
    expected = generate(model, inputs, num_beams=beams, use_cache=False)
    assert torch.equal(generate(model, inputs, num_beams=beams), expected)
    assert expected.shape[1] >= 10


@pytest.mark.parametrize("prompt", [1, 9])
@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "qwen3", "gemma2", "bart", "t5"])
def test_a_static_cache_changes_nothing(name: str, prompt: int) -> None:
    model, inputs = converted(name)
    inputs["input_ids"] = inputs["input_ids"][:, :prompt]
    expected = generate(model, inputs, use_cache=False)
    actual = generate(model, inputs, cache_implementation="static", disable_compile=True)
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("prompt", [1, 6])
def test_a_static_cache_without_a_padding_mask(prompt: int) -> None:
    """Its empty places are keys of zeros, which length scaling would count if they were seen."""
    architecture = ARCHITECTURES["llama"]
    model = architecture.build()
    relakit.hf.convert(model, relakit.AttentionSpec(length_exponent=1.0))
    tokens = architecture.inputs(padded=False)["input_ids"]
    with torch.no_grad():
        expected = model(tokens).logits
        cache = StaticCache(config=model.config, max_cache_len=20)
        steps = [model(tokens[:, :prompt], past_key_values=cache).logits]
        for place in range(prompt, 9):
            steps.append(model(tokens[:, place : place + 1], past_key_values=cache).logits)
    torch.testing.assert_close(torch.cat(steps, 1), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", names_of("decoder"))
def test_a_prompt_in_two_parts(name: str) -> None:
    model, inputs = converted(name)
    tokens = inputs["input_ids"]
    with torch.no_grad():
        expected = model(tokens).logits[:, 4:]
        first = model(tokens[:, :4], use_cache=True)
        second = model(tokens[:, 4:], past_key_values=first.past_key_values)
    torch.testing.assert_close(second.logits, expected)


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "qwen3", "gemma2"])
def test_padding_on_the_left_changes_nothing(name: str) -> None:
    model, inputs = converted(name)
    tokens = inputs["input_ids"]
    padded = torch.cat([torch.full((2, 4), PAD), tokens], 1)
    mask = (torch.arange(13) >= 4).long().expand(2, -1)
    expected = generate(model, {"input_ids": tokens})[:, 9:]
    actual = generate(model, {"input_ids": padded, "attention_mask": mask})[:, 13:]
    assert torch.equal(actual, expected)
    assert int(expected.max()) < VOCABULARY

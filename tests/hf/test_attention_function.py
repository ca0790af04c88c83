"""Attention in models of transformers, compared with eager code that shares nothing with ours."""

import copy
import math
from typing import Any

import pytest
import torch
from tiny_hf_models import ARCHITECTURES, NAMES, gradients_of, logits_of, names_of
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, AutoModelForCausalLM
from transformers.masking_utils import eager_mask

import relakit.hf
from relakit.hf.attention_function import rela_attention
from relakit.ops.native.connection import connected_extension


def eager_rela_g(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor]:
    """Equations 3 and 5 on the masks of eager attention, which are additive and always there."""
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query @ key.transpose(2, 3) * (scaling or query.shape[-1] ** -0.5)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if position_bias is not None:
        scores = scores + position_bias
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = scores.clamp(min=0)
    z = (weights @ value).transpose(1, 2)  # [batch, queries, heads, dim]
    flat = z.reshape(*z.shape[:2], -1)
    norm = module.rela.norm
    normalised = flat / (flat.pow(2).mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight
    return (torch.sigmoid(norm.gate * flat) * normalised).view_as(z), weights


def compare(ours: nn.Module, theirs: nn.Module, inputs: dict[str, Tensor]) -> None:
    """Both are held against ``theirs`` in float64.

    The norm of an attention that is almost null makes rounding errors large, those of the equations
    themselves, too: ours may be some times as large, and no more.
    """
    exact = copy.deepcopy(theirs).double()
    doubled = {
        name: tensor.double() if tensor.is_floating_point() else tensor
        for name, tensor in inputs.items()
    }
    actual, expected, right = (
        logits_of(ours, inputs),
        logits_of(theirs, inputs),
        logits_of(exact, doubled),
    )
    assert expected.std() > 1e-3  # there is something to compare
    error = (expected - right).abs().max().item()
    torch.testing.assert_close(actual.double(), right, rtol=1e-4, atol=max(5e-6, 8 * error))
    found, theirs_found, gradients = (
        gradients_of(ours, actual),
        gradients_of(theirs, expected),
        gradients_of(exact, right),
    )
    assert found.keys() == gradients.keys()
    for name, gradient in gradients.items():
        largest = gradient.abs().max().item()
        error = (theirs_found[name] - gradient).abs().max().item()
        allowed = max(1e-5 * max(largest, 1), 8 * error)
        torch.testing.assert_close(
            found[name].double(), gradient, rtol=1e-3, atol=allowed, msg=f"{name}: {allowed}"
        )


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_softmax_equals_eager_attention(name: str, padded: bool) -> None:
    architecture = ARCHITECTURES[name]
    model = architecture.build()
    eager = copy.deepcopy(model)
    eager.set_attn_implementation("eager")
    assert len(relakit.hf.convert(model, "softmax")) == architecture.modules
    compare(model, eager, architecture.inputs(padded=padded))


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_rela_g_equals_the_equations(name: str, padded: bool) -> None:
    AttentionInterface.register("eager_rela_g", eager_rela_g)
    AttentionMaskInterface.register("eager_rela_g", eager_mask)
    architecture = ARCHITECTURES[name]
    model = architecture.build()
    assert len(relakit.hf.convert(model)) == architecture.modules
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if ".rela." in parameter_name:
                parameter.normal_(0.5, 0.5)
    eager = copy.deepcopy(model)
    eager.set_attn_implementation("eager_rela_g")
    compare(model, eager, architecture.inputs(padded=padded))


@pytest.mark.parametrize("name", names_of("decoder", "seq2seq", "speech"))
def test_a_later_token_changes_nothing_before_it(name: str) -> None:
    architecture = ARCHITECTURES[name]
    model = architecture.build()
    relakit.hf.convert(model)
    inputs = architecture.inputs(padded=False)
    key = "input_ids" if architecture.kind == "decoder" else "decoder_input_ids"
    changed = {**inputs, key: inputs[key].clone()}
    changed[key][:, 5] = changed[key][:, 5] % 40 + 5
    with torch.no_grad():
        before, after = model(**inputs).logits, model(**changed).logits
        # The kernels may add in another order if other queries of a block have other zeros.
        torch.testing.assert_close(after[:, :5], before[:, :5], rtol=1e-4, atol=1e-5)
        assert not torch.allclose(after[:, 5:], before[:, 5:])
        if architecture.kind != "speech":  # its input is float32
            model.double()
            before, after = model(**inputs).logits, model(**changed).logits
            assert torch.equal(after[:, :5], before[:, :5])


@pytest.mark.parametrize("name", names_of("encoder", "decoder", "seq2seq"))
def test_padding_changes_nothing(name: str) -> None:
    architecture = ARCHITECTURES[name]
    model = architecture.build()
    relakit.hf.convert(model, relakit.AttentionSpec(threshold="learned", length_exponent=0.5))
    inputs = architecture.inputs()
    alone = {
        key: value[1:] if key == "decoder_input_ids" else value[1:, :6]
        for key, value in inputs.items()
    }
    with torch.no_grad():
        together = model(**inputs).logits[1]
        expected = model(**alone).logits[0]
    torch.testing.assert_close(together[: len(expected)], expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["bert", "llama", "gemma2", "t5", "whisper", "vit"])
def test_weights_are_those_of_the_model(name: str) -> None:
    architecture = ARCHITECTURES[name]
    model = architecture.build()
    names = relakit.hf.convert(model)
    inputs = architecture.inputs()
    with torch.no_grad(), relakit.capture(model) as records:
        model(**inputs)
    assert sorted(records) == sorted(names)
    with torch.no_grad():
        outputs = model(**inputs, output_attentions=True)
    fields = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    returned = [w for field in fields for w in (getattr(outputs, field, None) or ())]
    assert len(returned) == architecture.modules
    captured = [record.weights for module in records.values() for record in module]
    for weights in returned:
        assert (weights == 0).float().mean() > 0.1
        assert any(w.shape == weights.shape and torch.allclose(w, weights) for w in captured)


def test_no_weights_are_made_where_none_are_wanted() -> None:
    model = ARCHITECTURES["llama"].build()
    relakit.hf.convert(model)
    seen = []
    model.model.layers[0].self_attn.register_forward_hook(lambda m, a, out: seen.append(out[1]))
    model(**ARCHITECTURES["llama"].inputs())
    assert seen == [None]


def test_the_name_alone_is_rela_without_parameters() -> None:
    architecture = ARCHITECTURES["llama"]
    softmax = architecture.build()
    model = AutoModelForCausalLM.from_config(softmax.config, attn_implementation="rela").eval()
    model.load_state_dict(softmax.state_dict())  # no key more, no key less
    softmax.set_attn_implementation("rela")
    converted = architecture.build()
    relakit.hf.convert(converted, "relu-rms")  # its gain starts at 1
    inputs = architecture.inputs()
    expected = logits_of(converted, inputs)
    torch.testing.assert_close(logits_of(model, inputs), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(logits_of(softmax, inputs), expected, rtol=1e-4, atol=1e-5)


class Caller(nn.Module):
    """Stands for a module of transformers."""


def tensors(keys: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    query = torch.randn(2, 4, 3, 8)
    key, value = torch.randn(2, 2, 2, keys, 8)
    return query, key, value


def test_an_additive_mask_equals_a_boolean_one() -> None:
    query, key, value = tensors()
    mask = torch.rand(2, 1, 3, 5) > 0.5
    expected, _ = rela_attention(Caller(), query, key, value, mask)
    for lowest in (-math.inf, torch.finfo(torch.float32).min):
        additive = torch.zeros(2, 1, 3, 5).masked_fill(~mask, lowest)
        output, _ = rela_attention(Caller(), query, key, value, additive)
        torch.testing.assert_close(output, expected)


def test_without_a_mask_the_module_or_the_call_says_whether_it_is_causal() -> None:
    query, key, value = tensors()
    module = Caller()
    with pytest.raises(ValueError, match="Caller passes no mask and does not say whether"):
        rela_attention(module, query, key, value, None)
    module.is_causal = True
    causal, _ = rela_attention(module, query, key, value, None)
    mask = torch.ones(3, 5, dtype=torch.bool).tril()[None, None]
    torch.testing.assert_close(causal, rela_attention(module, query, key, value, mask)[0])
    everything = torch.ones_like(mask)
    torch.testing.assert_close(
        rela_attention(module, query, key, value, None, is_causal=False)[0],
        rela_attention(module, query, key, value, everything)[0],
    )
    # The newest of a cached sequence sees all.
    torch.testing.assert_close(
        rela_attention(module, query[:, :, 2:], key, value, None)[0],
        rela_attention(module, query[:, :, 2:], key, value, everything[:, :, 2:])[0],
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"s_aux": torch.zeros(4)}, r"sink tokens \(s_aux\)"),
        ({"cache": object()}, "paged cache"),
        ({"indices": torch.zeros(2, 3, 2)}, "selected keys"),
    ],
)
def test_what_would_change_the_result_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"Caller cannot use the attention 'rela': .*{message}"):
        rela_attention(Caller(), *tensors(), None, is_causal=False, **arguments)


def test_a_mask_with_two_dimensions_is_refused() -> None:
    query, key, value = tensors()
    with pytest.raises(ValueError, match=r"must have 4 dimensions .* got shape \(2, 5\)"):
        rela_attention(Caller(), query, key, value, torch.ones(2, 5, dtype=torch.bool))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype: torch.dtype) -> None:
    architecture = ARCHITECTURES["llama"]
    model = architecture.build()
    relakit.hf.convert(model)
    inputs = architecture.inputs()
    with torch.no_grad():
        expected = logits_of(model, inputs)
        logits = logits_of(copy.deepcopy(model).to(dtype), inputs)
        with torch.autocast("cpu", dtype=dtype):
            cast = logits_of(model, inputs)
    for actual in (logits, cast):
        assert torch.cosine_similarity(actual.float().flatten(), expected.flatten(), 0) > 0.99


@pytest.mark.skipif(connected_extension() is None, reason="the C++ extension is not built")
@pytest.mark.parametrize("name", ["bert", "llama", "mistral", "bart", "vit"])
def test_the_kernels_serve_every_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("a call left the short way to the kernels")

    architecture = ARCHITECTURES[name]
    model = architecture.build()
    relakit.hf.convert(model)
    monkeypatch.setattr("relakit.ops.attention.run_attention", refuse)
    for padded in (False, True):
        gradients_of(model, logits_of(model, architecture.inputs(padded=padded)))


def test_a_compiled_model_is_one_graph() -> None:
    architecture = ARCHITECTURES["llama"]
    model = architecture.build()
    relakit.hf.convert(model)
    inputs = architecture.inputs(padded=False)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    logits = logits_of(compiled, inputs)
    torch.testing.assert_close(logits, logits_of(model, inputs), rtol=1e-4, atol=1e-5)

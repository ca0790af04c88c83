"""`relakit.calibrate` on converted models of transformers, and the example that uses it."""

import copy
import random
import re
import runpy
import sys
from pathlib import Path

import pytest
import tiny_hf_models  # noqa: F401  # skips where transformers is missing
import torch
from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM

import relakit
import relakit.hf

EXAMPLES = Path(__file__).parents[2] / "examples"


def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=50,
            hidden_size=32,
            intermediate_size=40,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            initializer_range=0.3,
        )
    ).eval()


def token_batches() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(50, (2, 9), generator=generator) for _ in range(3)]


@torch.no_grad()
@pytest.mark.parametrize("attention", ["rela-g", "rela-i"])
def test_a_converted_model_comes_closer_to_what_it_was(attention):
    model = llama()
    before = model(token_batches()[0]).logits
    names = relakit.hf.convert(model, attention)
    plain = (model(token_batches()[0]).logits - before).square().mean()
    result = relakit.calibrate(model, token_batches())
    assert list(result) == names
    assert all(found.after < found.before for found in result.values())
    assert (model(token_batches()[0]).logits - before).square().mean() < plain


@torch.no_grad()
def test_each_layer_reads_what_it_read_with_softmax():
    """The gains of the last layer do not depend on those before it."""
    model = llama()
    relakit.hf.convert(model)
    other = copy.deepcopy(model)
    other.model.layers[0].self_attn.rela.norm.weight.fill_(100.0)
    for one in (model, other):
        relakit.calibrate(one, token_batches())
    first, second = (one.model.layers[1].self_attn.rela.norm.weight for one in (model, other))
    assert torch.equal(first, second)


def test_masks_and_named_arguments():
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2}
    model = BertModel(BertConfig(vocab_size=50, num_attention_heads=4, **sizes))
    relakit.hf.convert(model)
    tokens = token_batches()[0]
    mask = torch.ones_like(tokens)
    mask[1, 5:] = 0
    result = relakit.calibrate(model, [{"input_ids": tokens, "attention_mask": mask}])
    assert len(result) == 2


def test_the_example_prints_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    choose = random.Random(1).choice
    words = ["the", "old", "man", "sees", "a", "small", "dog"]
    texts = [" ".join(choose(words) for _ in range(60)) for _ in range(100)]
    (tmp_path / "text.txt").write_text("\n\n\n".join(texts))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr("torch.set_num_threads", lambda threads: None)
    short = ["--text", str(tmp_path / "text.txt"), "--base-steps", "4", "--steps", "2"]
    monkeypatch.setattr(sys, "argv", ["finetune_converted.py", *short])
    runpy.run_path(str(EXAMPLES / "finetune_converted.py"), run_name="__main__")
    printed = capsys.readouterr().out
    base, *tuned = [float(loss) for loss in re.findall(r"held-out loss ([0-9.]+)", printed)]
    assert len(tuned) == 2  # after 0 and 2 updates
    assert abs(tuned[0] - base) < 0.5
    assert re.search(r"zeros [1-9]", printed)

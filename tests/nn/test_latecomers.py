"""Conversion after an optimizer was built, or after the model was wrapped."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import relakit

NAME = "self_attn"


def build_layer() -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(8, 2, 8)


def test_an_optimizer_that_was_built_before() -> None:
    layer = build_layer()
    optimizer = torch.optim.AdamW(layer.parameters())
    message = r"\(AdamW\) was built before .* the 2 parameters .* such as self_attn\.norm\.weight"
    with pytest.warns(UserWarning, match=message) as caught:
        assert relakit.convert_attention(layer) == [NAME]
    assert caught[0].filename == __file__
    # What the message advises works.
    optimizer.add_param_group({"params": list(layer.self_attn.norm.parameters())})
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    assert held == {id(p) for p in layer.parameters()}


def test_an_optimizer_of_ones_own() -> None:
    class Mine(torch.optim.Optimizer):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {})

        def step(self, closure: Any = None) -> None:
            pass

    layer = build_layer()
    optimizer = Mine([{"params": [layer.linear1.weight]}, {"params": [layer.linear2.weight]}])
    with pytest.warns(UserWarning, match=r"\(Mine\) was built before"):
        relakit.convert_attention(layer)
    assert len(optimizer.param_groups) == 2


@pytest.mark.filterwarnings("error")
def test_no_warning_without_reason() -> None:
    other = torch.optim.SGD(build_layer().parameters())  # of another model
    layer = build_layer()
    relakit.convert_attention(layer)
    own = torch.optim.SGD(layer.parameters())
    relakit.convert_attention(layer, "relu")  # adds no parameter
    assert other.param_groups
    assert own.param_groups


@pytest.mark.filterwarnings("error")
def test_an_optimizer_that_is_gone_does_not_count() -> None:
    layer = build_layer()
    optimizer = torch.optim.SGD(layer.parameters())
    optimizer.itself = optimizer  # only the garbage collector can remove it
    gc.disable()
    try:
        del optimizer
        relakit.convert_attention(layer)
    finally:
        gc.enable()


@pytest.fixture
def _process_group() -> Iterator[None]:
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("_process_group")
def test_a_model_that_is_wrapped_already() -> None:
    model = DistributedDataParallel(nn.ModuleList([build_layer()]))
    with pytest.warns(UserWarning, match=r"wrapped in DistributedDataParallel .* wrap afterwards"):
        assert relakit.convert_attention(model) == ["module.0.self_attn"]


@pytest.mark.usefixtures("_process_group")
@pytest.mark.filterwarnings("error")
def test_a_wrapped_model_that_gets_no_parameters() -> None:
    model = DistributedDataParallel(nn.ModuleList([build_layer()]))
    assert relakit.convert_attention(model, "softmax") == ["module.0.self_attn"]

"""What relakit needs of torch beyond its public interface, by name; what the extension sees by it.

A test that fails here after an update of torch says what has changed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_states import OTHER_PLACES, OTHER_TENSORS, TRANSFORMS

from relakit.ops import torch_private
from relakit.ops.native.connection import connected_extension

PRIVATE_NAMES = {
    "DeviceContext",
    "DispatchKeySet",
    "_dispatch_keys",
    "_get_function_stack_at",
    "_get_tracing_state",
    "_has_any_global_hook",
    "_is_any_autocast_enabled",
    "_len_torch_dispatch_stack",
    "_len_torch_function_stack",
    "is_batchedtensor",
    "peek_interpreter_stack",
}


def test_every_private_name() -> None:
    public = {
        "Any",
        "Function",
        "Optimizer",
        "Sequence",
        "Tensor",
        "assume_constant_result",
        "forward_ad",
        "is_compiling",
        "nn",
        "torch",
    }
    imported = {
        name
        for name, value in vars(torch_private).items()
        if not name.startswith("__") and getattr(value, "__module__", "") != torch_private.__name__
    }
    assert imported - public == PRIVATE_NAMES


def test_attributes() -> None:
    assert torch.autograd.forward_ad._current_level == -1
    assert callable(super(torch.autograd.Function, torch.autograd.Function).apply)
    assert Tensor.__dlpack_c_exchange_api__ is not None
    assert torch.cpu._is_avx512_bf16_supported() == torch_private.cpu_computes_bf16()
    module = nn.MultiheadAttention(4, 2)
    for name in ("_reset_parameters", "_parameters", "_buffers", "_modules"):
        assert hasattr(module, name)


def test_optimizers_in_use() -> None:
    class Mine(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            pass

    class Unused(Mine):
        def step(self, closure: Any = None) -> None:
            pass

    assert Mine not in torch_private.optimizers_in_use()
    Mine([nn.Parameter(torch.zeros(1))])
    assert Mine in torch_private.optimizers_in_use()
    assert Unused not in torch_private.optimizers_in_use()


def test_what_data_parallelism_leaves_alone() -> None:
    """The wrapper reads this attribute; tests/train/test_distributed.py has it at work."""
    module = nn.BatchNorm1d(2)
    torch_private.keep_out_of_exchange(module, ["running_mean"])
    assert module._ddp_params_and_buffers_to_ignore == ["running_mean"]


def test_hooks_of_a_module() -> None:
    module = nn.Identity()
    assert not torch_private.has_hooks(module)
    for register in (
        module.register_forward_hook,
        module.register_forward_pre_hook,
        module.register_full_backward_hook,
        module.register_full_backward_pre_hook,
        nn.modules.module.register_module_forward_hook,
        nn.modules.module.register_module_full_backward_hook,
    ):
        handle = register(lambda *_: None)
        assert torch_private.has_hooks(module)
        handle.remove()
        assert not torch_private.has_hooks(module)


native = connected_extension()
needs_extension = pytest.mark.skipif(native is None, reason="the C++ extension is not there")


def is_plain(*tensors: Any) -> bool:
    return bool(native.is_plain(*tensors))


@contextmanager
def _saved_tensors_elsewhere() -> Iterator[None]:
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        yield


@contextmanager
def _default_device(device: str) -> Iterator[None]:
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)


PLAIN_PLACES = {
    "nothing": lambda: torch.enable_grad(),
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "saved tensors": _saved_tensors_elsewhere,
    "device": lambda: torch.device("cpu"),
    "default device": lambda: _default_device("cpu"),
}


@needs_extension
@pytest.mark.parametrize("place", PLAIN_PLACES)
def test_yes(place: str) -> None:
    with PLAIN_PLACES[place]():
        x = torch.randn(3, 4)
        assert is_plain()
        assert is_plain(x, None, nn.Parameter(x), x.mT, x.bfloat16(), x[:0])


@needs_extension
@pytest.mark.parametrize("place", OTHER_PLACES)
def test_no_inside_of(place: str) -> None:
    x = torch.randn(3)
    with OTHER_PLACES[place]():
        assert not is_plain(x)
        assert not is_plain()
    assert is_plain(x)


@needs_extension
def test_no_inside_of_a_mode_beside_the_default_device() -> None:
    x = torch.randn(3)
    with _default_device("cpu"), OTHER_PLACES["function mode"]():
        assert not is_plain(x)
    with OTHER_PLACES["function mode"](), torch.device("cpu"):
        assert not is_plain(x)
    with _default_device("meta"):
        assert not is_plain(x)


@needs_extension
@pytest.mark.parametrize("kind", OTHER_TENSORS)
def test_no_for_a_tensor_that_is(kind: str) -> None:
    x = torch.zeros(3)
    other = OTHER_TENSORS[kind](x)
    assert not is_plain(other)
    assert not is_plain(x, None, other)
    assert is_plain(x)


def _answers(transform: Callable[[Any, Tensor], Any]) -> list[bool]:
    """What the check says inside of a function that is transformed, and run on three numbers."""
    answers = []

    def ask(x: Tensor) -> Tensor:
        answers.append(is_plain(x))
        return x.sin().sum()

    transform(ask, torch.zeros(3))
    return answers


@needs_extension
@pytest.mark.parametrize("name", TRANSFORMS)
def test_no_inside_of_transform(name: str) -> None:
    answers = _answers(TRANSFORMS[name])
    assert answers
    assert not any(answers)
    assert is_plain(torch.zeros(3))


@needs_extension
def test_no_for_batched_gradients() -> None:
    answers = []

    class Ask(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            answers.append(is_plain(grad))
            return grad * 2

    x = torch.zeros(3, requires_grad=True)
    torch.autograd.grad(Ask.apply(x), x, torch.ones(4, 3), is_grads_batched=True)
    torch.autograd.grad(Ask.apply(x), x, torch.ones(3))
    assert answers == [False, True]

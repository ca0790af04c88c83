"""When an extension may be called directly: nothing at work around the call, ordinary tensors."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from relakit.attention.eager import is_plain_eager


class _Watching(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        return function(*args, **(kwargs or {}))


class _Overriding(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        return function(*args, **(kwargs or {}))


class _Subclass(Tensor):
    pass


@contextmanager
def _saved_tensors_elsewhere() -> Iterator[None]:
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        yield


PLAIN_PLACES = {
    "nothing": lambda: torch.enable_grad(),
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "saved tensors": _saved_tensors_elsewhere,
}


@pytest.mark.parametrize("place", PLAIN_PLACES)
def test_yes(place: str) -> None:
    with PLAIN_PLACES[place]():
        x = torch.randn(3, 4)
        assert is_plain_eager()
        assert is_plain_eager(x, None, nn.Parameter(x), x.mT, x.bfloat16(), x[:0])


OTHER_PLACES = {
    "fake": FakeTensorMode,
    "dispatch mode": _Watching,
    "function mode": _Overriding,
    "device": lambda: torch.device("cpu"),
    "forward derivatives": forward_ad.dual_level,
}


@pytest.mark.parametrize("place", OTHER_PLACES)
def test_no_inside_of(place: str) -> None:
    x = torch.randn(3)
    with OTHER_PLACES[place]():
        assert not is_plain_eager(x)
        assert not is_plain_eager()
    assert is_plain_eager(x)


def _nested() -> Tensor:
    return torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(1, 3)])


OTHER_TENSORS: dict[str, Callable[[], Tensor]] = {
    "subclass": lambda: torch.zeros(3).as_subclass(_Subclass),
    "fake": lambda: FakeTensorMode().from_tensor(torch.zeros(3)),
    "meta": lambda: torch.zeros(3, device="meta"),
    "sparse": lambda: torch.zeros(3).to_sparse(),
    "nested": _nested,
    "sparse parameter": lambda: nn.Parameter(torch.zeros(3).to_sparse()),
    "nested parameter": lambda: nn.Parameter(_nested()),
    "meta parameter": lambda: nn.Parameter(torch.zeros(3, device="meta")),
    "negative parameter": lambda: nn.Parameter(torch._neg_view(torch.ones(3))),
    "negative view": lambda: torch.complex(torch.ones(3), torch.ones(3)).conj().imag,
    "zeros without memory": lambda: torch._efficientzerotensor(3),
}


@pytest.mark.parametrize("kind", OTHER_TENSORS)
def test_no_for_a_tensor_that_is(kind: str) -> None:
    other, x = OTHER_TENSORS[kind](), torch.zeros(3)
    assert not is_plain_eager(other)
    assert not is_plain_eager(x, None, other)
    assert is_plain_eager(x)


def _answers(transform: Callable[[Callable[[Tensor], Tensor]], Any]) -> list[bool]:
    """What the check says inside of a function that is transformed, and run on three numbers."""
    answers = []

    def ask(x: Tensor) -> Tensor:
        answers.append(is_plain_eager(x))
        return x.sin().sum()

    transform(ask)
    return answers


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda f: torch.func.vmap(f)(torch.zeros(2, 3)),
    "grad": lambda f: torch.func.grad(f)(torch.zeros(3)),
    "jvp": lambda f: torch.func.jvp(f, (torch.zeros(3),), (torch.ones(3),)),
    "functionalize": lambda f: torch.func.functionalize(f)(torch.zeros(3)),
    "trace": lambda f: torch.jit.trace(f, torch.zeros(3), check_trace=False),
    "make_fx": lambda f: make_fx(f)(torch.zeros(3)),
    "make_fx before dispatch": lambda f: make_fx(f, pre_dispatch=True)(torch.zeros(3)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_no_inside_of_transform(name: str) -> None:
    answers = _answers(TRANSFORMS[name])
    assert answers
    assert not any(answers)
    assert is_plain_eager(torch.zeros(3))


def test_no_for_batched_gradients() -> None:
    answers = []

    class Ask(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            answers.append(is_plain_eager(grad))
            return grad * 2

    x = torch.zeros(3, requires_grad=True)
    torch.autograd.grad(Ask.apply(x), x, torch.ones(4, 3), is_grads_batched=True)
    torch.autograd.grad(Ask.apply(x), x, torch.ones(3))
    assert answers == [False, True]


def test_no_while_compiling() -> None:
    def ask(x: Tensor) -> Tensor:
        return x + (1 if is_plain_eager(x) else 2)

    torch._dynamo.reset()
    compiled = torch.compile(ask, fullgraph=True, backend="eager")
    assert (compiled(torch.zeros(3)) == 2).all()
    assert (ask(torch.zeros(3)) == 1).all()

    class Module(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return ask(x)

    exported = torch.export.export(Module(), (torch.zeros(3),))
    assert (exported.module()(torch.zeros(3)) == 2).all()


def test_takes_little_time() -> None:
    """About a microsecond, against the tens that it is there to save. The best of many rounds: a
    machine may be busy."""
    x, parameter = torch.zeros(3), nn.Parameter(torch.zeros(3))
    best = float("inf")
    for _ in range(300):
        start = time.perf_counter()
        for _ in range(50):
            is_plain_eager(x, parameter, parameter)
        best = min(best, (time.perf_counter() - start) / 50)
    assert best < 6e-6

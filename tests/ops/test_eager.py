"""When an extension may be called directly: nothing at work around the call, ordinary tensors."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from torch_states import OTHER_PLACES, OTHER_TENSORS, TRANSFORMS

import torch
from relakit.ops.native.eager import is_plain_eager
from torch import Tensor, nn


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


@pytest.mark.parametrize("place", OTHER_PLACES)
def test_no_inside_of(place: str) -> None:
    x = torch.randn(3)
    with OTHER_PLACES[place]():
        assert not is_plain_eager(x)
        assert not is_plain_eager()
    assert is_plain_eager(x)


@pytest.mark.parametrize("kind", OTHER_TENSORS)
def test_no_for_a_tensor_that_is(kind: str) -> None:
    x = torch.zeros(3)
    other = OTHER_TENSORS[kind](x)
    assert not is_plain_eager(other)
    assert not is_plain_eager(x, None, other)
    assert is_plain_eager(x)


def _answers(transform: Callable[[Any, Tensor], Any]) -> list[bool]:
    """What the check says inside of a function that is transformed, and run on three numbers."""
    answers = []

    def ask(x: Tensor) -> Tensor:
        answers.append(is_plain_eager(x))
        return x.sin().sum()

    transform(ask, torch.zeros(3))
    return answers


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

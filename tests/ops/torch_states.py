"""What keeps a call from going to the kernels directly: states of torch, and unusual tensors."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class _Watching(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        return function(*args, **(kwargs or {}))


class _Overriding(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        return function(*args, **(kwargs or {}))


class _Subclass(Tensor):
    pass


OTHER_PLACES: dict[str, Callable[[], Any]] = {
    "fake": FakeTensorMode,
    "dispatch mode": _Watching,
    "function mode": _Overriding,
    "device": lambda: torch.device("meta"),
    "forward derivatives": forward_ad.dual_level,
}


def _nested(x: Tensor) -> Tensor:
    return torch.nested.nested_tensor([x, x[:1]])


def _left_by_grad(x: Tensor) -> Tensor:
    """A tensor of torch.func.grad that outlived it."""
    kept = []

    def keep(y: Tensor) -> Tensor:
        kept.append(y)
        return y.sum()

    torch.func.grad(keep)(x)
    return kept[0]


OTHER_TENSORS: dict[str, Callable[[Tensor], Tensor]] = {
    "subclass": lambda x: x.as_subclass(_Subclass),
    "fake": lambda x: FakeTensorMode().from_tensor(x),
    "meta": lambda x: x.to("meta"),
    "sparse": lambda x: x.to_sparse(),
    "nested": _nested,
    "opaque": lambda x: x.to_mkldnn(),
    "sparse parameter": lambda x: nn.Parameter(x.to_sparse()),
    "nested parameter": lambda x: nn.Parameter(_nested(x)),
    "meta parameter": lambda x: nn.Parameter(x.to("meta")),
    "negative parameter": lambda x: nn.Parameter(torch._neg_view(x)),
    "negative view": lambda x: torch.complex(x, x).conj().imag,
    "zeros without memory": lambda x: torch._efficientzerotensor(x.shape),
    "left by a transform": _left_by_grad,
}
"""Each made of an ordinary tensor."""

TRANSFORMS: dict[str, Callable[[Any, Tensor], Any]] = {
    "vmap": lambda f, x: torch.func.vmap(f)(torch.stack((x, x))),
    "grad": lambda f, x: torch.func.grad(f)(x),
    "jvp": lambda f, x: torch.func.jvp(f, (x,), (torch.ones_like(x),)),
    "functionalize": lambda f, x: torch.func.functionalize(f)(x),
    "trace": lambda f, x: torch.jit.trace(f, x, check_trace=False),
    "make_fx": lambda f, x: make_fx(f)(x),
    "make_fx before dispatch": lambda f, x: make_fx(f, pre_dispatch=True)(x),
}
"""Each runs a function of one tensor, which gives a number."""

"""Whether PyTorch is about to just run an operation, and on ordinary tensors.

PyTorch's registry of operators serves compilers, tracers, function transforms and tensor
subclasses, and costs tens of microseconds per call. Where none of them is at work, an extension may
be called directly, on the addresses of tensors.
"""

# Functions are imported by name: the way to them through modules would take as long as they do.

from typing import Any, Final

from torch._C import (
    DispatchKeySet,
    _dispatch_keys,
    _get_tracing_state,
    _len_torch_dispatch_stack,
    _len_torch_function_stack,
)
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad
from torch.compiler import is_compiling

import torch
from torch import Tensor, nn


def _ordinary_keys() -> frozenset[int]:
    """The sets of dispatch keys that strided CPU tensors have, as numbers."""
    with torch.inference_mode(False):
        usual = torch.empty(0, device="cpu")
    with torch.inference_mode():
        inference = torch.empty(0, device="cpu")
    return frozenset(_dispatch_keys(tensor).raw_repr() for tensor in (usual, inference))


_ORDINARY_KEYS: Final = _ordinary_keys()
_ORDINARY_TYPES: Final = frozenset((Tensor, nn.Parameter))


def parts_for_extensions() -> dict[str, Any]:
    """What `is_plain_eager` is made of, for the same check in C++: all but the one for compilers.

    ``counters`` give 0, and ``states`` None, where nothing is at work.
    """
    return {
        "counters": (_len_torch_dispatch_stack, _len_torch_function_stack),
        "states": (peek_interpreter_stack, _get_tracing_state),
        "forward_ad": vars(forward_ad),
        "tensor_type": Tensor,
        "parameter_type": nn.Parameter,
        "dispatch_keys": _dispatch_keys,
        "number_of_keys": DispatchKeySet.raw_repr,
        "ordinary_keys": _ORDINARY_KEYS,
    }


def is_plain_eager(*tensors: Tensor | None) -> bool:
    """Whether nothing watches or transforms operations, and all tensors are ordinary ones on a CPU.

    False while compiling, exporting, tracing, inside a mode for dispatch or for torch functions,
    inside a transform of torch.func, and with forward-mode derivatives; and for tensor subclasses,
    and tensors whose numbers are not simply what is in memory at their address. None is skipped.
    """
    if (
        is_compiling()  # first: a compiler looks no further
        or _len_torch_dispatch_stack() != 0
        or _len_torch_function_stack() != 0
        or peek_interpreter_stack() is not None
        or _get_tracing_state() is not None
        or forward_ad._current_level >= 0
    ):
        return False
    for tensor in tensors:
        if tensor is not None and (
            type(tensor) not in _ORDINARY_TYPES
            # Tells apart what is sparse, nested, on another device, batched by
            # torch.autograd.grad(is_grads_batched=True), or still to be negated or filled with 0.
            or _dispatch_keys(tensor).raw_repr() not in _ORDINARY_KEYS
        ):
            return False
    return True

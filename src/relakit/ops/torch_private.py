"""Everything that relakit uses from torch beyond its public interface; a test lists it by name.

The exceptions are attributes of `torch.nn.MultiheadAttention` that its subclass
`relakit.MultiheadAttention` uses; the test names them too.

Functions are imported by name: looking them up in their modules takes as long as calling them.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import (
    DispatchKeySet,
    _dispatch_keys,
    _get_function_stack_at,
    _get_tracing_state,
    _is_any_autocast_enabled,
    _len_torch_dispatch_stack,
    _len_torch_function_stack,
)
from torch._C._functorch import is_batchedtensor, peek_interpreter_stack
from torch.autograd import Function, forward_ad
from torch.compiler import assume_constant_result, is_compiling
from torch.nn.modules.module import _has_any_global_hook
from torch.optim import Optimizer
from torch.utils._device import DeviceContext


# The compiler already guards compiled code on which transforms are active.
@assume_constant_result  # type: ignore[untyped-decorator]
def is_transforming() -> bool:
    """Whether this runs inside vmap, grad or another torch.func transform."""
    return peek_interpreter_stack() is not None


def is_forward_mode() -> bool:
    """Whether tensors may carry forward-mode derivatives."""
    return forward_ad._current_level >= 0


def is_batched(tensor: Tensor) -> bool:
    """Whether vmap hides a batch behind this tensor."""
    return not is_compiling() and is_batchedtensor(tensor)


def is_any_autocast_enabled() -> bool:
    """Whether autocast is on for any device."""
    return _is_any_autocast_enabled()


def recorder_of(function: type[Function]) -> Any:
    """The function's ``apply`` without its check for torch.func transforms.

    For calls where none is known to be active: the check takes longer than recording.
    """
    return super(Function, function).apply  # type: ignore[misc]


def has_hooks(module: nn.Module) -> bool:
    """Whether calling the module does more than its ``forward``."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or _has_any_global_hook()  # type: ignore[no-untyped-call]
    )


def optimizers_in_use() -> set[type[Optimizer]]:
    """Optimizer classes that have been instantiated: the first instance marks their ``step``."""
    return {kind for kind in _with_subclasses(Optimizer) if getattr(kind.step, "hooked", False)}


def _with_subclasses(kind: type[Optimizer]) -> set[type[Optimizer]]:
    kinds = {kind}
    for below in kind.__subclasses__():
        kinds |= _with_subclasses(below)
    return kinds


def keep_out_of_exchange(module: nn.Module, names: Sequence[str]) -> None:
    """Have `DistributedDataParallel` leave these parameters and buffers of a module alone.

    Its public options cannot do this: ``broadcast_buffers=False`` is deprecated, and its
    replacement in torch 2.13 still copies buffers when the module is wrapped.
    """
    wrapper = nn.parallel.DistributedDataParallel
    wrapper._set_params_and_buffers_to_ignore_for_model(module, [*names])  # type: ignore[no-untyped-call]


def cpu_computes_bf16() -> bool:
    """Whether the processor has bfloat16 instructions; False if torch cannot tell."""
    is_supported: Any = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return bool(is_supported())


def _ordinary_keys() -> frozenset[int]:
    """The dispatch key sets of plain strided CPU tensors, as numbers."""
    with torch.inference_mode(False):
        usual = torch.empty(0, device="cpu")
    with torch.inference_mode():
        inference = torch.empty(0, device="cpu")
    return frozenset(_dispatch_keys(tensor).raw_repr() for tensor in (usual, inference))


def _watching_function_modes() -> int:
    """How many torch function modes are active, not counting one that makes the CPU the default.

    That mode only decides where new tensors go, and the extension's go to the CPU anyway.
    """
    count: int = _len_torch_function_stack()
    if count == 0:
        return 0
    return sum(not _is_cpu_as_default(_get_function_stack_at(i)) for i in range(count))


def _is_cpu_as_default(mode: object) -> bool:
    return type(mode) is DeviceContext and mode.device.type == "cpu"


def parts_for_extension() -> dict[str, Any]:
    """What the C++ extension needs to read tensors, and to know that nothing else is watching.

    ``counters`` return 0, and ``states`` None, where torch only runs operations: without dispatch
    modes, torch function modes, torch.func transforms or tracing. Dispatch keys reveal a tensor
    that is sparse, nested, on another device, batched by vmap, or still to be negated or filled
    with 0.
    """
    return {
        "counters": (_len_torch_dispatch_stack, _watching_function_modes),
        "states": (peek_interpreter_stack, _get_tracing_state),
        "forward_ad": vars(forward_ad),
        "tensor_type": Tensor,
        "parameter_type": nn.Parameter,
        "dispatch_keys": _dispatch_keys,
        "number_of_keys": DispatchKeySet.raw_repr,
        "ordinary_keys": _ordinary_keys(),
        "exchange": getattr(Tensor, "__dlpack_c_exchange_api__", None),
        "is_autocast_enabled": _is_any_autocast_enabled,
    }

"""Backends: the implementations that an attention call can run on.

A backend answers with the reasons why it cannot run (a list of sentences, empty when it can). The
first backend in BACKENDS without a reason serves the call; one that is asked for by name, in the
call or by RELAKIT_BACKEND, serves it or raises, and never hands the call on to another.
"""

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final, ParamSpec, TypeVar

import torch.nn.functional as F
from torch.autograd import forward_ad

import torch
from relakit.ops.activations import ACTIVATIONS
from relakit.ops.call import AttentionCall, AttentionResult, statistics_of
from relakit.ops.native.attention import (
    LARGEST_DIM,
    is_transforming,
    native_attention,
    needs_gradients,
)
from relakit.ops.native.eager import is_plain_eager
from relakit.ops.native.extension import BACKEND_VARIABLE, DTYPES, why_unavailable
from relakit.ops.reference import reference_attention
from torch import Tensor, nn

_FROM_VARIABLE: Final = f" (from {BACKEND_VARIABLE} in the environment)"

MESSAGES_LOGGED: Final = 100
"""At most so many in one process: a reason may contain a number that is new in every call."""

CPU: Final = torch.device("cpu")

_logger = logging.getLogger("relakit.attention")
_logged: set[str] = set()

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _constant_when_compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Let torch.compile call the function once, while it compiles, and not look into it."""
    marked: Callable[Parameters, Result] = torch.compiler.assume_constant_result(function)  # type: ignore[no-untyped-call]
    return marked


@_constant_when_compiled
def _environment(variable: str) -> str | None:
    return os.environ.get(variable)


@_constant_when_compiled
def _is_exporting() -> bool:
    """Whether torch.export is at work. PyTorch 2.6 cannot tell: False."""
    return hasattr(torch.compiler, "is_exporting") and torch.compiler.is_exporting()


def _is_forward_mode() -> bool:
    """Whether there may be tensors that carry forward-mode derivatives."""
    return not torch.compiler.is_compiling() and forward_ad._current_level >= 0


@_constant_when_compiled
def _log_once(level: int, message: str) -> bool:
    """Log a message unless this process has logged it before; whether it was logged."""
    if message in _logged or len(_logged) == MESSAGES_LOGGED:
        return False
    _logged.add(message)
    _logger.log(level, message)
    return True


class Backend(ABC):
    """One implementation of attention."""

    name: ClassVar[str]
    description: ClassVar[str]
    activations: ClassVar[tuple[str, ...]]
    """What it computes; calls with another activation are not for it."""

    def unavailable(self) -> list[str]:
        """Reasons why the backend cannot work on this machine at all."""
        return []

    @abstractmethod
    def refusals(self, call: AttentionCall) -> list[str]:
        """Reasons why the backend cannot serve this call, its activation aside."""

    def reservations(self, call: AttentionCall) -> list[str]:
        """Reasons why it should serve this call only if asked for by name."""
        return []

    @abstractmethod
    def run(self, call: AttentionCall) -> AttentionResult:
        """The output, and the weights and statistics if the call needs them."""

    def reasons_against(self, call: AttentionCall) -> list[str]:
        """All reasons why the backend cannot serve this call, here and now."""
        reasons = [*self.unavailable()]
        if call.activation not in self.activations:
            reasons.append(f"it computes {', '.join(self.activations)}, not {call.activation!r}")
        return reasons + self.refusals(call)


class SdpaBackend(Backend):
    """PyTorch's fused attention, for softmax."""

    name = "sdpa"
    description = "PyTorch's scaled_dot_product_attention; softmax without weights"
    activations = ("softmax",)

    def refusals(self, call: AttentionCall) -> list[str]:
        if call.need_weights or call.need_statistics:
            return ["it does not return weights or what depends on them"]
        return []

    def run(self, call: AttentionCall) -> AttentionResult:
        mask = call.attn_mask
        output = F.scaled_dot_product_attention(
            call.query,
            call.key,
            call.value,
            # SDPA itself takes no mask of one dimension, though it would broadcast.
            attn_mask=mask[None] if mask is not None and mask.dim() == 1 else mask,
            dropout_p=call.dropout_p,
            is_causal=call.is_causal,
            scale=call.scale,
            enable_gqa=call.enable_gqa,
        )
        return AttentionResult(output)


class NativeBackend(Backend):
    """The C++ kernels, for ReLU attention on the CPU."""

    name = "native"
    description = "C++ kernels that skip zeros; relu on the CPU, float32 and bfloat16"
    activations = ("relu",)

    def unavailable(self) -> list[str]:
        return why_unavailable()

    def refusals(self, call: AttentionCall) -> list[str]:
        query, mask = call.query, call.attn_mask
        reasons = []
        if query.device != CPU:
            reasons.append(f"it runs on the CPU, not on {query.device.type!r}")
        if query.dtype not in DTYPES:
            reasons.append(f"it computes float32 and bfloat16, not {query.dtype}")
        if call.power not in (1, 2):
            reasons.append(f"it knows the powers 1 and 2, not {call.power}")
        if call.need_weights and needs_gradients(call):
            reasons.append("it returns weights only where no gradients are recorded")
        if (call.need_weights or call.need_statistics) and not is_plain_eager(query, call.key):
            reasons.append("it returns the output alone where the call is compiled or watched")
        if query.size(-1) > LARGEST_DIM or call.value.size(-1) > LARGEST_DIM:
            reasons.append(f"it takes at most {LARGEST_DIM} features per head")
        if mask is not None and mask.requires_grad:
            reasons.append("it has no gradient for the mask")
        if not _has_weights_for_all_values(call):
            reasons.append("its values have no more leading dimensions than query and key have")
        if is_transforming():
            reasons.append("it cannot run inside torch.func transforms such as vmap")
        if _is_forward_mode():
            reasons.append("it has no forward-mode derivatives (torch.autograd.forward_ad)")
        return reasons

    def reservations(self, call: AttentionCall) -> list[str]:
        reasons = []
        if _is_exporting() or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            reasons.append("a program that is exported or traced would need relakit to run")
        for tensor in (call.query, call.key, call.value):
            if type(tensor) is not Tensor and type(tensor) is not nn.Parameter:
                reasons.append(f"it may not know how to handle a {type(tensor).__name__}")
                break
        return reasons

    def run(self, call: AttentionCall) -> AttentionResult:
        return native_attention(call)


def _has_weights_for_all_values(call: AttentionCall) -> bool:
    """Whether the leading dimensions of value broadcast to those of the weights, and not beyond."""
    if call.value.dim() == 4 and call.value.size(0) == call.key.size(0) == call.query.size(0):
        return True
    lead, value_lead = call.weights_shape[:-2], tuple(call.value.shape[:-2])
    if call.enable_gqa:
        lead, value_lead = lead[:-1], value_lead[:-1]
    return tuple(torch.broadcast_shapes(lead, value_lead)) == lead  # type: ignore[no-untyped-call]


class ReferenceBackend(Backend):
    """The plain PyTorch formula, for everything."""

    name = "reference"
    description = "the formula in plain PyTorch; every activation, device and option"
    activations = tuple(ACTIVATIONS)

    def refusals(self, call: AttentionCall) -> list[str]:
        return []

    def run(self, call: AttentionCall) -> AttentionResult:
        output, weights = reference_attention(call)
        return AttentionResult(
            output,
            _in_wanted_form(weights, call.need_weights) if call.need_weights else None,
            statistics_of(weights) if call.need_statistics else None,
        )


def _in_wanted_form(weights: Tensor, form: bool | str) -> Tensor:
    return weights.reshape(-1, weights.size(-1)).to_sparse_csr() if form == "csr" else weights


BACKENDS: Final[dict[str, Backend]] = {
    backend.name: backend for backend in (SdpaBackend(), NativeBackend(), ReferenceBackend())
}
"""All backends by name, in order of preference."""


def check_backend_name(name: str | None, source: str = "") -> None:
    """Raise ValueError for a name that is not in BACKENDS, and say where the name came from."""
    if name is not None and name not in BACKENDS:
        raise ValueError(
            f"unknown backend {name!r}{source}; choose one of {', '.join(BACKENDS)}, or "
            f"{'unset the variable' if source else 'None'} for the first that can serve the call"
        )


def backend_from_environment() -> str | None:
    """The backend that RELAKIT_BACKEND names, None if it is not set; ValueError if unknown."""
    name = _environment(BACKEND_VARIABLE) or None
    check_backend_name(name, _FROM_VARIABLE)
    return name


def choose_backend(call: AttentionCall, name: str | None) -> Backend:
    """The backend called ``name`` if it can serve the call.

    For None it is the one that RELAKIT_BACKEND names, or without it the first one that can.
    """
    source = ""
    if name is None:
        name = backend_from_environment()
        if name is None:
            return _first_that_can(call)
        source = _FROM_VARIABLE
    check_backend_name(name)
    backend = BACKENDS[name]
    reasons = backend.reasons_against(call)
    if reasons:
        raise ValueError(f"backend {name!r}{source} cannot serve this call: {'; '.join(reasons)}")
    return backend


def _first_that_can(call: AttentionCall) -> Backend:
    passed_over = ""
    level = logging.INFO
    for backend in BACKENDS.values():
        if call.activation not in backend.activations:
            continue
        reasons = backend.refusals(call) or backend.reservations(call)
        if not reasons:
            reasons = backend.unavailable()
            if reasons:  # that can be repaired, and calls are slower until it is
                level = logging.WARNING
        if not reasons:
            if passed_over:
                _log_once(
                    level, f"backend {backend.name!r} serves {call.activation!r} calls{passed_over}"
                )
            return backend
        passed_over += f"; backend {backend.name!r} does not: {'; '.join(reasons)}"
    raise RuntimeError("no attention backend can serve this call")  # the reference serves all

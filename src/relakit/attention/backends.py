"""Backends: the implementations that an attention call can run on.

A backend answers with the reasons why it cannot run (a list of sentences, empty when it can). The
first backend in BACKENDS without a reason serves the call; one that is asked for by name serves it
or raises, and never hands the call on to another.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Final

import torch
import torch.nn.functional as F
from torch import Tensor

from relakit.attention.call import AttentionCall
from relakit.attention.extension import why_unavailable
from relakit.attention.native import LARGEST_DIM, is_transforming, native_attention
from relakit.attention.reference import reference_attention


class Backend(ABC):
    """One implementation of attention."""

    name: ClassVar[str]
    description: ClassVar[str]
    example_activation: ClassVar[str]
    """An activation that the backend serves, for a trial call."""

    by_name_only: ClassVar[bool] = False
    """Whether the backend serves only calls that name it."""

    def unavailable(self) -> list[str]:
        """Reasons why the backend cannot work on this machine at all."""
        return []

    @abstractmethod
    def refusals(self, call: AttentionCall) -> list[str]:
        """Reasons why the backend cannot serve this call."""

    @abstractmethod
    def run(self, call: AttentionCall) -> tuple[Tensor, Tensor | None]:
        """The output, and the weights if the call needs them."""


class SdpaBackend(Backend):
    """PyTorch's fused attention, for softmax."""

    name = "sdpa"
    description = "PyTorch's scaled_dot_product_attention; softmax without weights"
    example_activation = "softmax"

    def refusals(self, call: AttentionCall) -> list[str]:
        reasons = []
        if call.activation != "softmax":
            reasons.append(f"it computes softmax, not {call.activation!r}")
        if call.need_weights:
            reasons.append("it does not return weights (need_weights=True)")
        return reasons

    def run(self, call: AttentionCall) -> tuple[Tensor, None]:
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
        return output, None


class NativeBackend(Backend):
    """The C++ kernels, for ReLU attention on the CPU. Not chosen by itself: ask for it by name."""

    name = "native"
    description = "C++ kernels that skip zeros; relu on the CPU, float32 and bfloat16; by name only"
    example_activation = "relu"
    by_name_only = True

    def unavailable(self) -> list[str]:
        return why_unavailable()

    def refusals(self, call: AttentionCall) -> list[str]:
        query, mask = call.query, call.attn_mask
        reasons = []
        if call.activation != "relu":
            reasons.append(f"it computes relu, not {call.activation!r}")
        if query.device.type != "cpu":
            reasons.append(f"it runs on the CPU, not on {query.device.type!r}")
        if query.dtype not in (torch.float32, torch.bfloat16):
            reasons.append(f"it computes float32 and bfloat16, not {query.dtype}")
        if call.power not in (1, 2):
            reasons.append(f"it knows the powers 1 and 2, not {call.power}")
        if call.length_exponent != 0:
            reasons.append("it does not divide by the length (length_exponent)")
        if call.need_weights:
            reasons.append("it does not return weights (need_weights=True)")
        if max(query.size(-1), call.value.size(-1)) > LARGEST_DIM:
            reasons.append(f"it takes at most {LARGEST_DIM} features per head")
        if mask is not None and mask.requires_grad:
            reasons.append("it has no gradient for the mask")
        if is_transforming():
            reasons.append("it cannot run inside torch.func transforms such as vmap")
        return reasons

    def run(self, call: AttentionCall) -> tuple[Tensor, None]:
        return native_attention(call).output, None


class ReferenceBackend(Backend):
    """The plain PyTorch formula, for everything."""

    name = "reference"
    description = "the formula in plain PyTorch; every activation, device and option"
    example_activation = "relu"

    def refusals(self, call: AttentionCall) -> list[str]:
        return []

    def run(self, call: AttentionCall) -> tuple[Tensor, Tensor | None]:
        output, weights = reference_attention(call)
        return output, weights if call.need_weights else None


BACKENDS: Final[dict[str, Backend]] = {
    backend.name: backend for backend in (SdpaBackend(), NativeBackend(), ReferenceBackend())
}
"""All backends by name, in order of preference."""


def check_backend_name(name: str | None) -> None:
    """Raise ValueError for a name that is not in BACKENDS."""
    if name is not None and name not in BACKENDS:
        raise ValueError(
            f"unknown backend {name!r}; choose one of {', '.join(BACKENDS)}, or None for the first "
            "that can serve the call"
        )


def choose_backend(call: AttentionCall, name: str | None) -> Backend:
    """The backend called ``name`` if it can serve the call; for None, the first one that can."""
    check_backend_name(name)
    if name is not None:
        backend = BACKENDS[name]
        reasons = backend.unavailable() + backend.refusals(call)
        if reasons:
            raise ValueError(f"backend {name!r} cannot serve this call: {'; '.join(reasons)}")
        return backend
    for backend in BACKENDS.values():
        if backend.by_name_only:
            continue
        if not backend.unavailable() and not backend.refusals(call):
            return backend
    raise RuntimeError("no attention backend can serve this call")  # the reference serves all

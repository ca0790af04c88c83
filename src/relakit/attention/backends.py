"""Backends: the implementations that an attention call can run on.

A backend answers with the reasons why it cannot run (a list of sentences, empty when it can). The
first backend in BACKENDS without a reason serves the call; one that is asked for by name serves it
or raises, and never hands the call on to another.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Final

import torch.nn.functional as F
from torch import Tensor

from relakit.attention.call import AttentionCall
from relakit.attention.reference import reference_attention


class Backend(ABC):
    """One implementation of attention."""

    name: ClassVar[str]
    description: ClassVar[str]
    example_activation: ClassVar[str]
    """An activation that the backend serves, for a trial call."""

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
    backend.name: backend for backend in (SdpaBackend(), ReferenceBackend())
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
        if not backend.unavailable() and not backend.refusals(call):
            return backend
    raise RuntimeError("no attention backend can serve this call")  # the reference serves all

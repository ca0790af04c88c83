"""Backends: the implementations that an attention call can run on.

A backend gives its reasons for not running a call as a list of sentences, which is empty if it can
run. The first backend in BACKENDS without a reason serves the call. If the call or RELAKIT_BACKEND
names a backend, that one serves the call or raises, and never passes the call on to another.
"""

import logging
import os
from typing import Final

import torch

from relakit.ops.backends.base import Backend
from relakit.ops.backends.native import NativeBackend
from relakit.ops.backends.reference import ReferenceBackend
from relakit.ops.backends.sdpa import SdpaBackend
from relakit.ops.call import AttentionCall
from relakit.ops.native.extension import BACKEND_VARIABLE
from relakit.ops.options import BackendName

__all__ = [
    "BACKENDS",
    "Backend",
    "BackendName",
    "NativeBackend",
    "ReferenceBackend",
    "SdpaBackend",
    "backend_from_environment",
    "choose_backend",
    "known_backend",
]

_FROM_VARIABLE: Final = f" (from {BACKEND_VARIABLE} in the environment)"

MESSAGES_LOGGED: Final = 100
"""Limit per process: a reason may contain a number that is different in every call."""

_logger = logging.getLogger("relakit.attention")
_logged: set[str] = set()


# torch.compile calls the next two functions once, while it compiles, and does not trace them.


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _environment(variable: str) -> str | None:
    return os.environ.get(variable)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _log_once(level: int, message: str) -> bool:
    """Log a message unless this process has logged it before; returns whether it did."""
    if message in _logged or len(_logged) == MESSAGES_LOGGED:
        return False
    _logged.add(message)
    _logger.log(level, message)
    return True


BACKENDS: Final[dict[BackendName, Backend]] = {
    backend.name: backend for backend in (SdpaBackend(), NativeBackend(), ReferenceBackend())
}
"""All backends by name, in order of preference."""


def known_backend(name: str | None, source: str = "") -> BackendName | None:
    """The name; ValueError unless it is None or in BACKENDS. ``source``: where it came from."""
    if name is not None and name not in BACKENDS:
        raise ValueError(
            f"unknown backend {name!r}{source}; choose one of {', '.join(BACKENDS)}, or "
            f"{'unset the variable' if source else 'None'} for the first that can serve the call"
        )
    return name


def backend_from_environment() -> BackendName | None:
    """The backend that RELAKIT_BACKEND names; None if it is not set, ValueError if unknown."""
    return known_backend(_environment(BACKEND_VARIABLE) or None, _FROM_VARIABLE)


def choose_backend(call: AttentionCall, name: BackendName | None) -> Backend:
    """The backend called ``name``; ValueError if it cannot serve the call.

    With None, the backend that RELAKIT_BACKEND names, or else the first that can serve the call.
    """
    source = ""
    if name is None:
        name = backend_from_environment()
        if name is None:
            return _first_that_can(call)
        source = _FROM_VARIABLE
    known_backend(name)
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
            if reasons:  # users can fix this, and calls are slower until they do
                level = logging.WARNING
        if not reasons:
            if passed_over:
                _log_once(
                    level, f"backend {backend.name!r} serves {call.activation!r} calls{passed_over}"
                )
            return backend
        passed_over += f"; backend {backend.name!r} does not: {'; '.join(reasons)}"
    raise RuntimeError("no attention backend can serve this call")  # the reference serves all

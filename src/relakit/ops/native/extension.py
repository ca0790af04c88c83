"""The C++ extension: whether it is there, and which instruction set to use."""

import os
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Final

import torch

ISA_VARIABLE: Final = "RELAKIT_CPU_ISA"
BACKEND_VARIABLE: Final = "RELAKIT_BACKEND"

DTYPES: Final = (torch.float32, torch.bfloat16)
"""What the kernels compute with."""


def load_extension() -> ModuleType:
    """The C++ extension; ImportError where it was not built."""
    # Looked up first, as an import that has nothing to do takes a microsecond.
    return sys.modules.get("relakit._native") or import_module("relakit._native")


def choose_isa() -> str:
    """The instruction set to use: the best one, or the one that RELAKIT_CPU_ISA names."""
    return _choose(os.environ.get(ISA_VARIABLE), load_extension())


@lru_cache(maxsize=8)  # asking the extension takes longer than a short call does
def _choose(wanted: str | None, extension: ModuleType) -> str:
    usable: list[str] = extension.usable_isas()
    if not wanted:
        return usable[0]
    if wanted not in usable:
        raise ValueError(
            f"{ISA_VARIABLE}={wanted!r} is not usable here; choose one of {', '.join(usable)}"
        )
    return wanted


def _why_unavailable() -> list[str]:
    """Reasons why the kernels cannot run on this machine."""
    try:
        choose_isa()
    except ImportError as error:
        return [f"the C++ extension is not there: {error}"]
    except ValueError as error:
        return [str(error)]
    return []


# The compiler cannot look into imports and the environment, and need not.
why_unavailable: Callable[[], list[str]] = torch.compiler.assume_constant_result(  # type: ignore[no-untyped-call]
    _why_unavailable
)

"""Loading the C++ extension: whether it works here, and with which instruction set."""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Final

import torch

EXTENSION: Final = "relakit._native"
ISA_VARIABLE: Final = "RELAKIT_CPU_ISA"
BACKEND_VARIABLE: Final = "RELAKIT_BACKEND"

DTYPES: Final = (torch.float32, torch.bfloat16)
"""The dtypes that the kernels support."""


def load_extension() -> ModuleType:
    """The C++ extension; ImportError if it was not built."""
    # Looked up first: an import takes a microsecond even if the module is already loaded.
    return sys.modules.get(EXTENSION) or import_module(EXTENSION)


def choose_isa() -> str:
    """The instruction set to use: the best one, or the one named by RELAKIT_CPU_ISA."""
    isa: str = load_extension().chosen_isa()
    return isa


def _why_unavailable() -> list[str]:
    """Reasons why the kernels cannot run on this machine."""
    try:
        choose_isa()
    except ImportError as error:
        return [f"the C++ extension is not there: {error}"]
    except ValueError as error:
        return [str(error)]
    return []


# torch.compile cannot trace imports or reads of the environment, and does not need to.
why_unavailable: Callable[[], list[str]] = torch.compiler.assume_constant_result(  # type: ignore[no-untyped-call]
    _why_unavailable
)

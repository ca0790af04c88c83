"""The C++ extension's own way to the tensors of Python, where torch offers it."""

from functools import lru_cache, partial
from types import ModuleType
from typing import Any, Final

import torch
from relakit.ops.native.eager import parts_for_extensions
from relakit.ops.native.extension import load_extension
from relakit.ops.native.kernel_calls import empty_output
from torch import Tensor

CONNECTED: Final[set[ModuleType | None]] = set()
"""Extensions that can read tensors: one, but for tests."""


def direct_calls() -> Any:
    """The extension, if it can read tensors; None where torch is older than 2.10, say."""
    try:
        extension = load_extension()
    except ImportError:
        return None
    if _connect(extension):
        CONNECTED.add(extension)
        return extension
    return None


@lru_cache(maxsize=4)
def _connect(extension: ModuleType) -> bool:
    return bool(extension.connect_torch(connection_parts()))


def connection_parts() -> dict[str, Any]:
    """What the extension needs of torch."""
    return {
        **parts_for_extensions(),
        "exchange": getattr(Tensor, "__dlpack_c_exchange_api__", None),
        "is_grad_enabled": torch.is_grad_enabled,
        "is_autocast_enabled": getattr(
            torch._C, "is_any_autocast_enabled", partial(torch.is_autocast_enabled, "cpu")
        ),
        "get_num_threads": torch.get_num_threads,
        "empty_like": torch.empty_like,
        "contiguous_format": torch.contiguous_format,
        "int64": torch.int64,
        "empty_output": empty_output,
    }

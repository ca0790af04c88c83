"""The C++ extension's own way to the tensors of Python, where torch offers it."""

import sys
from functools import lru_cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from relakit.attention.eager import parts_for_extensions
from relakit.attention.extension import load_extension
from relakit.attention.kernel_calls import empty_output


def direct_calls() -> Any:
    """The extension, if it can read tensors; None where torch is older than 2.10, say."""
    extension = sys.modules.get("relakit._native")
    if extension is None:
        try:
            extension = load_extension()
        except ImportError:
            return None
    return extension if _connect(extension) else None


@lru_cache(maxsize=4)
def _connect(extension: ModuleType) -> bool:
    parts = connection_parts()
    return parts["exchange"] is not None and bool(extension.connect_torch(parts))


def connection_parts() -> dict[str, Any]:
    """What the extension needs of torch."""
    return {
        **parts_for_extensions(),
        "exchange": getattr(Tensor, "__dlpack_c_exchange_api__", None),
        "is_grad_enabled": torch.is_grad_enabled,
        "is_autocast_enabled": torch.is_autocast_enabled,
        "get_num_threads": torch.get_num_threads,
        "empty_like": torch.empty_like,
        "contiguous_format": torch.contiguous_format,
        "int64": torch.int64,
        "empty_output": empty_output,
    }

"""The C++ extension, connected to torch: every call gets it from here."""

import sys
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

import torch
from torch import Tensor

from relakit.ops.native.attention import record_attention
from relakit.ops.native.extension import EXTENSION, load_extension, why_unavailable
from relakit.ops.native.norm import record_norm
from relakit.ops.torch_private import parts_for_extension

_connected: Final[set[ModuleType | None]] = set()
"""Only one, except in tests."""


def connected_extension() -> Any:
    """The extension, ready to read torch's tensors; None if it is missing or cannot read them."""
    extension = sys.modules.get(EXTENSION)
    return extension if extension in _connected else _connect()


def _connect() -> Any:
    try:
        extension = load_extension()
    except ImportError:
        return None
    if not _is_connected(extension):
        return None
    _connected.add(extension)
    return extension


def _why_not_connected() -> list[str]:
    """Reasons why tensors cannot be passed to the extension's functions on this machine."""
    reasons = why_unavailable()
    if not reasons and connected_extension() is None:
        reasons = [f"it does not know the DLPack interface of torch {torch.__version__}"]
    return reasons


# For torch.compile, as in `why_unavailable`.
why_not_connected: Callable[[], list[str]] = torch.compiler.assume_constant_result(  # type: ignore[no-untyped-call]
    _why_not_connected
)


@lru_cache(maxsize=4)
def _is_connected(extension: ModuleType) -> bool:
    return bool(extension.connect(connection_parts()))


def connection_parts() -> dict[str, Any]:
    """What the extension needs from torch and from relakit."""
    return {
        **parts_for_extension(),
        "is_grad_enabled": torch.is_grad_enabled,
        "get_num_threads": torch.get_num_threads,
        "empty_like": torch.empty_like,
        "new_empty": Tensor.new_empty,
        "new_zeros": Tensor.new_zeros,
        "contiguous_format": torch.contiguous_format,
        "float32": torch.float32,
        "int32": torch.int32,
        "int64": torch.int64,
        "draw_seed": draw_seed,
        "empty_output": empty_output,
        "record": record_attention,
        "record_norm": record_norm,
    }


def draw_seed() -> Tensor:
    """A seed for dropout from torch's generator, so that torch.manual_seed reproduces it."""
    return torch.randint(2**62, (1,), device="cpu")


def empty_output(query: Tensor, value: Tensor) -> Tensor:
    """Memory for the output, with heads inside positions if the query is laid out that way."""
    size = value.size(3)
    if query.size(3) == size:
        output = torch.empty_like(query)
        if output.stride(3) == 1 or size == 1:  # false if rows of the query overlap
            return output
    batch, heads, queries, _ = query.shape
    _, head_stride, row_stride, _ = query.stride()
    if heads > 1 and head_stride < row_stride:
        # Not a transposed view: autograd would not let the caller change it in place.
        strides = (queries * heads * size, size, heads * size, 1)
        return query.new_empty_strided((batch, heads, queries, size), strides)
    return query.new_empty((batch, heads, queries, size))

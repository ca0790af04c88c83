"""Tensors as a safetensors file, written through `relakit.files.writing` like everything else.

The safetensors library writes files itself: it renames over whatever the path is, gives files its
own mode, and its errors do not name the file. The format is simple: the length of a header, the
header as JSON, and all bytes in a row.
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from relakit.files.writing import whole_file

_TYPES: Final = {
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""In the order in which the library writes them: large elements first, so that all are aligned."""
_ALIGNMENT: Final = 8


def tensor_bytes(tensors: Mapping[str, Tensor]) -> int:
    """How many bytes the tensors take in a file, without its header."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors by name, from any device, whole or not at all.

    Raises:
        WriteError: the file cannot be written.
        ValueError: the format has no name for a tensor's type.
    """
    for name, tensor in tensors.items():
        if tensor.dtype not in _TYPES:
            raise ValueError(f"{name} has the type {tensor.dtype}, which cannot be saved")
    rank = list(_TYPES).index
    ordered = sorted(tensors.items(), key=lambda item: (rank(item[1].dtype), item[0]))
    header = _header(ordered)
    size = len(header) + tensor_bytes(tensors)
    with whole_file(path, size=size) as file:
        file.write(header)
        for _, tensor in ordered:
            # Raw bytes: NumPy has no bfloat16.
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            file.write(flat.view(torch.uint8).numpy().data)


def _header(ordered: list[tuple[str, Tensor]]) -> bytes:
    content: dict[str, dict[str, object]] = {}
    end = 0
    for name, tensor in ordered:
        start, end = end, end + tensor.numel() * tensor.element_size()
        content[name] = {
            "dtype": _TYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return struct.pack("<Q", len(text)) + text

"""Threads and precision of the peers that run on PyTorch."""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

PRECISIONS = ("fp32", "bf16")


def set_threads(request: Mapping[str, Any]) -> None:
    torch.set_num_threads(int(request.get("threads", 1)))


def autocast_options(precision: str) -> dict[str, Any]:
    """Arguments of ``torch.autocast``; bf16 is mixed precision with float32 weights."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {PRECISIONS}, not {precision!r}")
    return {"device_type": "cpu", "dtype": torch.bfloat16, "enabled": precision == "bf16"}


def tensors(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}

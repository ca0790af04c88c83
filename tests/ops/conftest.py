"""Fixtures for the tests of the C++ kernels. Their modules are skipped without the extension."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from watched_extension import WatchedExtension

from relakit.nn import norms
from relakit.ops.native import extension
from relakit.ops.native.connection import connection_parts


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each call of a norm, whether the kernels served it."""
    watched = WatchedExtension(norms.connected_extension(), "norm")
    monkeypatch.setattr(norms, "connected_extension", lambda: watched)
    return watched.served


@pytest.fixture
def rooms() -> Iterator[list[Tensor]]:
    """What the extension allocates, each in the middle of a larger tensor full of sevens."""
    made: list[Tensor] = []

    def in_a_room(shape: Any, dtype: torch.dtype) -> Tensor:
        count = math.prod(shape)
        made.append(torch.full((count + 64,), 7, dtype=dtype))
        return made[-1][32 : 32 + count].view(shape)

    def empty_like(x: Tensor, memory_format: Any = None) -> Tensor:
        return in_a_room(x.shape, x.dtype)

    def new_empty(x: Tensor, shape: Any, dtype: torch.dtype | None = None) -> Tensor:
        return in_a_room(shape, x.dtype if dtype is None else dtype)

    parts = connection_parts()
    native = extension.load_extension()
    native.connect({**parts, "empty_like": empty_like, "new_empty": new_empty})
    yield made
    native.connect(parts)

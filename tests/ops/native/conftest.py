"""What tests of attention in C++ share."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from native_extension import NATIVE
from watched_extension import WatchedExtension

from relakit.bench.tune import Thresholds, thresholds_set
from relakit.ops import attention as ops_attention


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each call, whether the extension served it at once."""
    watched = WatchedExtension(ops_attention.connected_extension(), "attention")
    monkeypatch.setattr(ops_attention, "connected_extension", lambda: watched)
    return watched.served


@pytest.fixture
def all_ways(isa: str) -> Iterator[None]:
    """Ways of computing that thresholds rule out on some processors are taken on all."""
    changes = {"least_to_screen": 256, "most_to_fetch": 0.6}
    with ExitStack() as stack:
        for dtype in ("float32", "bfloat16"):
            values = NATIVE.attention_thresholds(isa, dtype)
            stack.enter_context(thresholds_set(isa, dtype, Thresholds(**{**values, **changes})))
        yield

"""What tests of attention in C++ share."""

import pytest
from watched_extension import WatchedExtension

from relakit.ops import attention as ops_attention


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each call, whether the extension served it at once."""
    watched = WatchedExtension(ops_attention.connected_extension(), "attention")
    monkeypatch.setattr(ops_attention, "connected_extension", lambda: watched)
    return watched.served

"""Fixtures for the tests of the C++ kernels. Their modules are skipped without the extension."""

from typing import Any

import pytest

from relakit.ops.native import extension
from relakit.ops.native import norm as native_norm

try:
    ISAS = extension.load_extension().usable_isas()
except ImportError:
    ISAS = []


@pytest.fixture(params=ISAS)
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each instruction set that this machine has, in turn."""
    monkeypatch.setenv(extension.ISA_VARIABLE, request.param)
    return str(request.param)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that the norm's kernels run forward."""
    counted: list[int] = []
    run = native_norm.run_forward

    def count(*args: Any, **kwargs: Any) -> Any:
        counted.append(1)
        return run(*args, **kwargs)

    monkeypatch.setattr(native_norm, "run_forward", count)
    return counted

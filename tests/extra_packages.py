"""Packages and programs that only some tests need, and that continuous integration must have."""

import os
from importlib.util import find_spec
from typing import NoReturn

import pytest

needs_pyarrow = pytest.mark.skipif(
    find_spec("pyarrow") is None and "RELAKIT_REQUIRE_PARQUET" not in os.environ,
    reason="pyarrow is not installed",
)


def skip_unless_required(variable: str, reason: str) -> NoReturn:
    """Skip the test; fail instead where a variable says that what it needs must be there."""
    if os.environ.get(variable):
        pytest.fail(reason)
    pytest.skip(reason)

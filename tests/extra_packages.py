"""Packages that only some parts of relakit need."""

import os
from importlib.util import find_spec

import pytest

needs_pyarrow = pytest.mark.skipif(
    find_spec("pyarrow") is None and "RELAKIT_REQUIRE_PARQUET" not in os.environ,
    reason="pyarrow is not installed",
)

"""The C++ extension and its instruction sets. Without it, tests that import this are skipped."""

import pytest

from relakit.ops.native import extension

try:
    NATIVE = extension.load_extension()
except ImportError as error:
    pytest.skip(f"the C++ extension is not there: {error}", allow_module_level=True)

ISAS: list[str] = NATIVE.usable_isas()

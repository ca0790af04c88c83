"""A pytest plugin: tests use the extension that `make sanitize` built, not the installed one.

RELAKIT_SANITIZED=path/to/_native.so PYTHONPATH=tests pytest -p sanitized_extension
"""

import importlib.util
import os
import sys
from importlib.machinery import ExtensionFileLoader
from pathlib import Path

NAME = "relakit._native"


def _replace() -> None:
    path = Path(os.environ["RELAKIT_SANITIZED"]).resolve()
    if b"__asan_init" not in path.read_bytes():
        raise RuntimeError(f"{path} was built without sanitizers; pass -DRELAKIT_SANITIZE=ON")
    if NAME in sys.modules:
        raise RuntimeError(f"{NAME} was imported before its sanitized build could take its place")
    loader = ExtensionFileLoader(NAME, str(path))
    spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[NAME] = module


# When the plugin is imported: the tests' conftest files come next, and use the extension already.
_replace()


def pytest_report_header() -> str:
    return f"sanitized extension: {sys.modules[NAME].__file__}"

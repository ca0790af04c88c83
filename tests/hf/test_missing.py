"""Without transformers: one clear error, and nothing else suffers. Runs where it is missing too."""

import importlib
import sys

import pytest

import relakit


def test_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("relakit.hf")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'relakit\[hf\]'"):
        importlib.import_module("relakit.hf")


def test_it_is_not_among_the_names_that_a_star_imports() -> None:
    assert "hf" not in relakit.__all__

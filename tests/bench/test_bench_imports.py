"""The package's benchmark measures attention: it needs nothing of the translation toolkit."""

import ast
from pathlib import Path

import pytest

import relakit.bench

FILES = sorted(Path(relakit.bench.__file__).parent.glob("*.py"))
TOOLKIT = tuple(f"relakit.{room}" for room in ("analysis", "cli", "decode", "model", "train"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_imports(path: Path) -> None:
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    modules = [node.module for node in tree if isinstance(node, ast.ImportFrom) and node.module]
    assert [module for module in modules if module.startswith(TOOLKIT)] == []

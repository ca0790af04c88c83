"""The package's benchmark measures attention: it needs nothing of the translation toolkit."""

import ast
from pathlib import Path

import pytest

import relakit.bench

FILES = sorted(Path(relakit.bench.__file__).parent.glob("*.py"))
TOOLKIT = tuple(f"relakit.{room}" for room in ("analysis", "cli", "decode", "model", "train"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_imports(path: Path) -> None:
    modules = imported_modules(path.read_text(encoding="utf-8"))
    assert [module for module in modules if module.startswith(TOOLKIT)] == []


def imported_modules(source: str) -> list[str]:
    """Everything that may be a module, inside functions too."""
    modules = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules += [f"{node.module}.{alias.name}" for alias in node.names]
    return modules


def test_every_form_of_import_is_seen() -> None:
    for source in (
        "import relakit.decode.beam as b",
        "from relakit import decode",
        "from relakit.decode import beam",
    ):
        assert any(module.startswith(TOOLKIT) for module in imported_modules(source)), source

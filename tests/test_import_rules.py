"""The direction of data flow: who may import whom (the contracts are in pyproject.toml)."""

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "relakit"


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the relakit under ``root``, whichever relakit is installed."""
    # -S ignores .pth files, hence the editable install, which would otherwise come first.
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    site_packages = sysconfig.get_path("purelib")
    return subprocess.run(
        [sys.executable, "-S", "-c", code, "--no-cache"],
        cwd=root,
        env={
            "PYTHONPATH": f"{root / 'src'}{os.pathsep}{site_packages}",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_contracts_are_kept() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "5 kept, 0 broken" in result.stdout


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("ops/intruder.py", "import numpy"),
        ("ops/intruder.py", "from rich.table import Table"),
        ("ops/intruder.py", "import relakit.nn.norms"),
        ("nn/intruder.py", "import relakit.analysis"),
        ("ops/intruder.py", "from relakit.cli.main import app"),
        ("ops/intruder.py", "import relakit.bench.cases"),
        ("ops/intruder.py", "import relakit.writing"),
        ("analysis/intruder.py", "import relakit.cli.doctor"),
        ("analysis/intruder.py", "import relakit.bench.cases"),
        ("bench/intruder.py", "import relakit.cli.bench"),
        ("data/intruder.py", "import torch"),
        ("data/intruder.py", "import relakit.model"),
        ("metrics/intruder.py", "import relakit.data"),
        ("model/intruder.py", "import relakit.decode"),
        ("decode/intruder.py", "import relakit.train"),
        ("train/intruder.py", "import relakit.cli.main"),
        ("report/intruder.py", "import torch"),
        ("report/intruder.py", "import relakit.analysis.attention_pass"),
        ("report/intruder.py", "import relakit.bench.plot"),
        ("analysis/intruder.py", "import relakit.report"),
    ],
)
def test_the_contracts_catch_an_intruder(module: str, forbidden: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    copy = tmp_path / "src" / "relakit"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / module).write_text(f"{forbidden}\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "intruder" in result.stdout


@pytest.mark.parametrize(
    "path",
    [path for room in ("ops", "nn") for path in sorted((PACKAGE / room).rglob("*.py"))],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_attention_imports_torch_only(path: Path) -> None:
    """The contract names the packages that are forbidden; this names those that are allowed."""
    allowed = {"torch", "relakit", *sys.stdlib_module_names}
    assert imported_packages(path) <= allowed


def test_writing_imports_the_standard_library_only() -> None:
    assert imported_packages(PACKAGE / "writing.py") <= sys.stdlib_module_names


def imported_packages(path: Path) -> set[str]:
    """Top-level names of everything that a file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}

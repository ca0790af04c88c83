"""The direction of data flow: who may import whom (the contracts are in pyproject.toml)."""

import ast
import os
import re
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


# Who must not import what.
INTRUDERS = [
    ("ops", "import numpy"),
    ("ops", "from rich.table import Table"),
    ("ops", "import relakit.nn.norms"),
    ("nn", "import relakit.analysis"),
    ("ops", "from relakit.cli.main import app"),
    ("ops", "import relakit.bench.cases"),
    ("ops", "import relakit.files.writing"),
    ("analysis", "import relakit.cli.doctor"),
    ("analysis", "import relakit.bench.cases"),
    ("bench", "import relakit.cli.bench"),
    ("data", "import torch"),
    ("data", "import relakit.model"),
    ("metrics", "import relakit.data"),
    ("model", "import relakit.decode"),
    ("decode", "import relakit.train"),
    ("train", "import relakit.cli.main"),
    ("report", "import torch"),
    ("report", "import relakit.analysis.attention_pass"),
    ("report", "import relakit.bench.plot"),
    ("analysis", "import relakit.report"),
]


def test_the_contracts_catch_every_intruder(tmp_path: Path) -> None:
    """All in one copy of the package, each in a module of its own, which the linter has to name."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    copy = tmp_path / "src" / "relakit"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for number, (room, forbidden) in enumerate(INTRUDERS):
        (copy / room / f"intruder{number}.py").write_text(f"{forbidden}\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    for number, (room, forbidden) in enumerate(INTRUDERS):
        imported = forbidden.split()[1]
        if not imported.startswith("relakit"):
            imported = imported.partition(".")[0]  # the linter knows of other packages as a whole
        line = rf"relakit\.{room}\.intruder{number} -> {re.escape(imported)}\b"
        assert re.search(line, result.stdout), f"{room}: {forbidden}\n{result.stdout}"


@pytest.mark.parametrize(
    "path",
    [path for room in ("ops", "nn") for path in sorted((PACKAGE / room).rglob("*.py"))],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_attention_imports_torch_only(path: Path) -> None:
    """The contract names the packages that are forbidden; this names those that are allowed."""
    allowed = {"torch", "relakit", *sys.stdlib_module_names}
    assert imported_packages(path) <= allowed


@pytest.mark.parametrize(
    "path",
    [PACKAGE / "limits.py", *sorted((PACKAGE / "files").glob("*.py"))],
    ids=lambda path: path.stem,
)
def test_files_and_limits_import_the_standard_library_only(path: Path) -> None:
    assert imported_packages(path) <= {"relakit", *sys.stdlib_module_names}


def imported_packages(path: Path) -> set[str]:
    """Top-level names of everything that a file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}

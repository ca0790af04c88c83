"""Packages as users get them: built from the source archive, installed, and imported.

Nothing here uses the network, the editable install, or a build directory inside the repository.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files, requires, version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

# One worker runs them all: they share the packages that they build.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]

COMPILER = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
needs_toolchain = pytest.mark.skipif(
    not (shutil.which("cmake") and COMPILER), reason="needs CMake and a C++ compiler"
)


def run(*command: str | Path, **environment: str) -> str:
    """Run a command outside the repository and return what it printed."""
    result = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        cwd=os.path.abspath(os.sep),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def pip(*arguments: str | Path, **environment: str) -> None:
    run(
        sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", *arguments,
        PIP_CONFIG_FILE=os.devnull, **environment,
    )  # fmt: skip


def build_wheel(source: Path, destination: Path, **environment: str) -> Path:
    pip(
        "wheel", source, "--wheel-dir", destination,
        "--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir", **environment,
    )  # fmt: skip
    (wheel,) = destination.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Installation:
    """A wheel in a directory of its own."""

    target: Path

    @classmethod
    def of(cls, wheel: Path, target: Path) -> "Installation":
        pip("install", wheel, "--target", target, "--no-deps", "--no-index")
        return cls(target)

    def python(self, *arguments: str | Path) -> str:
        """Run Python with this relakit, and with everything else from the current environment."""
        # -S ignores .pth files, and with them the editable install of this repository.
        others = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        path = os.pathsep.join([str(self.target), *sorted(others)])
        return run(sys.executable, "-S", *arguments, PYTHONPATH=path)

    def relakit(self, *arguments: str) -> str:
        return self.python(self.target / "bin" / "relakit", *arguments)

    def doctor(self) -> dict[str, Any]:
        diagnosis: dict[str, Any] = json.loads(self.relakit("doctor", "--json"))
        return diagnosis

    def check_import(self) -> None:
        """Import relakit, from here and not from the repository, and use it."""
        code = (
            "import torch, relakit; print(relakit.__file__);"
            "x = torch.ones(1, 2, 3); assert relakit.attention(x, x, x).shape == x.shape"
        )
        assert Path(self.python("-c", code).strip()).is_relative_to(self.target)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive. Wheels are built from it, so a file that it lacks shows."""
    directory = tmp_path_factory.mktemp("sdist")
    code = (
        "import os, sys; os.chdir(sys.argv[1]); sys.path.insert(0, 'native');"
        "import build_backend; build_backend.build_sdist(sys.argv[2])"
    )
    run(sys.executable, "-c", code, ROOT, directory)
    (archive,) = directory.glob("*.tar.gz")
    return archive


def write_program(path: Path, command: str) -> str:
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def native_wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled in half the time, as the last -O counts.

    What is shown here is that the archive holds all that the compiler and the linker ask for. The
    optimised kernels are compiled by `make setup`, and every other test runs those.
    """
    program = tmp_path_factory.mktemp("bin") / "quick-compiler"
    compiler = write_program(program, f'exec {COMPILER} "$@" -O0')
    return build_wheel(sdist, tmp_path_factory.mktemp("native_wheel"), CXX=compiler)


@pytest.fixture(scope="module")
def native(native_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation.of(native_wheel, tmp_path_factory.mktemp("native") / "site")


def test_sdist_has_what_a_build_needs_and_no_more(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md", "constraints.txt"}
    needed |= {str(path.relative_to(ROOT)) for path in ROOT.glob("native/*.*")}
    assert needed <= names
    strays = {name for name in names if name.startswith((".venv", ".git/", "build/"))}
    strays |= {name for name in names if "__pycache__" in name or name.endswith((".so", ".pyc"))}
    assert not strays


@needs_toolchain
def test_native_wheel(native_wheel: Path, native: Installation) -> None:
    assert not native_wheel.name.endswith("py3-none-any.whl")
    with zipfile.ZipFile(native_wheel) as archive:
        names = archive.namelist()
    data = "relakit/bench/demo_heads.safetensors"
    assert {"relakit/py.typed", "relakit/_native.pyi", data} <= set(names)
    page = {
        str(path.relative_to(ROOT / "src")) for path in ROOT.glob("src/relakit/report/page/*.*")
    }
    assert "relakit/report/page/page.html" in page
    assert page <= set(names)
    extension = "relakit/_native" + sysconfig.get_config_var("EXT_SUFFIX")
    assert extension in names

    assert native.relakit("--version") == f"relakit {version('relakit')}\n"
    diagnosis = native.doctor()
    assert diagnosis["works"]
    assert diagnosis["native"]["works"]
    assert diagnosis["native"]["cpu_features"]


def distributions_of(name: str) -> set[str]:
    """The distribution and all that it requires here, in normal form."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        current = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if current in found:
            continue
        try:
            required = requires(current) or []
        except PackageNotFoundError:  # for another platform or an extra
            continue
        found.add(current)
        waiting += [
            re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in required if "extra ==" not in line
        ]
    return found


@needs_toolchain
def test_wheel_imports_where_there_is_only_torch(native: Installation, tmp_path: Path) -> None:
    """No typer, rich or numpy: the library needs torch, and the command line is another matter."""
    only_torch = tmp_path / "only_torch"
    only_torch.mkdir()
    for name in distributions_of("torch"):
        for file in files(name) or []:
            top = file.parts[0]
            if top != ".." and not (only_torch / top).exists():
                (only_torch / top).symlink_to(
                    Path(str(file.locate())).parents[len(file.parts) - 2]
                    if len(file.parts) > 1
                    else file.locate()
                )
    code = (
        "import importlib.util as u, torch, relakit;"
        "assert not any(map(u.find_spec, ('typer', 'rich', 'numpy'))), 'not an empty environment';"
        "x = torch.ones(1, 2, 8); m = relakit.MultiheadAttention(8, 2);"
        "assert relakit.attention(x, x, x).shape == m(x, x, x)[0].shape == x.shape;"
        "import relakit._native; print(relakit.__file__)"
    )
    path = os.pathsep.join(map(str, (native.target, only_torch)))
    printed = run(sys.executable, "-S", "-c", code, PYTHONPATH=path)
    assert Path(printed.splitlines()[-1]).is_relative_to(native.target)


def test_broken_compiler_gives_a_pure_wheel(sdist: Path, tmp_path: Path) -> None:
    broken = write_program(tmp_path / "broken-compiler", "exit 1")
    pure_wheel = build_wheel(sdist, tmp_path / "wheel", CC=broken, CXX=broken)
    assert pure_wheel.name.endswith("py3-none-any.whl")
    installed = Installation.of(pure_wheel, tmp_path / "site")
    installed.check_import()
    assert installed.relakit("--version") == f"relakit {version('relakit')}\n"
    diagnosis = installed.doctor()
    assert diagnosis["works"]
    assert not diagnosis["native"]["works"]
    reasons = " ".join(diagnosis["native"]["problems"])
    assert "No module named 'relakit._native'" in reasons
    assert "C++17 compiler is missing or fails" in reasons


@pytest.mark.skipif(
    importlib.util.find_spec("cmake") is not None, reason="CMake is installed as a Python package"
)
def test_missing_cmake_gives_a_pure_wheel(sdist: Path, tmp_path: Path) -> None:
    wheel = build_wheel(sdist, tmp_path / "wheel", PATH=str(tmp_path))
    assert wheel.name.endswith("py3-none-any.whl")


def test_a_pure_wheel_on_request(sdist: Path, tmp_path: Path) -> None:
    wheel = build_wheel(sdist, tmp_path / "wheel", RELAKIT_PURE="1")
    assert wheel.name.endswith("py3-none-any.whl")

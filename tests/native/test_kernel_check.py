"""The kernels for ARM, compiled by Debian's cross compiler and run by an emulator.

`kernel_check` compares all kernels with plain formulas, and those for NEON with the portable ones.
`make kernels` runs the same program on the processor that is here.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from extra_packages import skip_unless_required

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "aarch64"  # kept, so that the next run compiles what has changed

# One worker runs them all: they share the program.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("aarch64")]


def find(*programs: str) -> str | None:
    beside_python = Path(sys.executable).parent  # where pip installs CMake
    return next(
        filter(None, map(shutil.which, (*programs, str(beside_python / programs[0])))), None
    )


CMAKE = find("cmake")
COMPILER = find("aarch64-linux-gnu-g++")
EMULATOR = find("qemu-aarch64-static", "qemu-aarch64")


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={name: x for name, x in os.environ.items() if not name.startswith("RELAKIT_")},
    )


@pytest.fixture(scope="session")
def program() -> Path:
    tools = {"cmake": CMAKE, "g++-aarch64-linux-gnu": COMPILER, "qemu-user-static": EMULATOR}
    missing = [package for package, path in tools.items() if path is None]
    if missing:
        reason = f"needs {' and '.join(missing)} (packages of Debian)"
        skip_unless_required("RELAKIT_REQUIRE_AARCH64", reason)
    assert CMAKE is not None
    options = {
        "CMAKE_TOOLCHAIN_FILE": ROOT / "native" / "aarch64-linux-gnu.cmake",
        "RELAKIT_KERNEL_CHECK": "ON",
    }
    for step in (
        ["-S", ROOT, "-B", BUILD, *(f"-D{name}={value}" for name, value in options.items())],
        ["--build", BUILD, "--parallel", "2"],
    ):
        result = run(CMAKE, *step)
        assert result.returncode == 0, result.stdout
        assert "warning:" not in result.stdout, result.stdout
    return BUILD / "tests" / "native" / "kernel_check"


def emulate(cpu: str, program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert EMULATOR is not None
    return run(EMULATOR, "-cpu", cpu, program, *arguments)


def test_kernels_on_a_processor_with_dot_products(program: Path) -> None:
    result = emulate("neoverse-n1", program)
    assert result.returncode == 0, result.stdout
    assert result.stdout.startswith("processor: neon asimddp\nkernels: neon portable\n")
    for isa in ("neon", "portable"):
        found = re.search(rf"^{isa}: (\d+) comparisons, 0 differences$", result.stdout, re.M)
        assert found is not None, result.stdout
        assert int(found[1]) > 10_000


def test_kernels_on_a_processor_without_them(program: Path) -> None:
    result = emulate("cortex-a72", program, "neon")
    assert result.returncode == 0, result.stdout
    assert result.stdout.startswith("processor: neon\nkernels: neon portable\n")
    assert ", 0 differences" in result.stdout


def test_a_difference_is_an_error(program: Path) -> None:
    """Sums in another order are differences if none is tolerated."""
    result = emulate("neoverse-n1", program, "--tolerance=0", "neon")
    assert result.returncode == 1
    assert re.search(r"^neon, .*expected is", result.stdout, re.M)


def test_kernels_of_other_processors_are_not_there(program: Path) -> None:
    result = emulate("neoverse-n1", program, "avx2")
    assert result.returncode == 2
    assert "no kernels 'avx2' on this machine; choose one of neon, portable" in result.stdout

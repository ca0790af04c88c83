"""`relakit doctor`: its verdicts on backends that work, fail, differ or are not available."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor
from typer.testing import CliRunner

from relakit.attention import backends as attention_backends
from relakit.attention.backends import BACKENDS, Backend
from relakit.cli import doctor
from relakit.cli.main import app


class Stub(Backend):
    """A backend that serves ReLU in the way that a test needs."""

    name = "stub"
    description = "a backend for tests"
    example_activation = "relu"

    def __init__(self, run: Any = None, unavailable: list[str] | None = None) -> None:
        self._run = run
        self._unavailable = unavailable or []

    def unavailable(self) -> list[str]:
        return self._unavailable

    def refusals(self, call: Any) -> list[str]:
        return [] if call.activation == "relu" else ["it serves relu only"]

    def run(self, call: Any) -> tuple[Tensor, Tensor | None]:
        return self._run(call)


def wrong(call: Any) -> tuple[Tensor, None]:
    return torch.full_like(call.query, 7.0), None


def nan(call: Any) -> tuple[Tensor, None]:
    return torch.full_like(call.query, float("nan")), None


def broken(call: Any) -> tuple[Tensor, None]:
    raise RuntimeError("the kernel fell over")


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch):
    """Put a stub in front of the real backends."""

    def install(stub: Stub) -> None:
        registered = {stub.name: stub, **BACKENDS}
        monkeypatch.setattr(attention_backends, "BACKENDS", registered)

    return install


def run_json() -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    return result.exit_code, json.loads(result.stdout)


def status(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(entry for entry in found["backends"] if entry["name"] == name)


def test_a_sound_installation() -> None:
    code, found = run_json()
    assert code == 0
    assert found["works"] is True
    assert found["problems"] == []
    assert [entry["name"] for entry in found["backends"]] == list(BACKENDS)
    assert found["default_backend"] in BACKENDS
    assert status(found, "reference")["works"] is True
    assert found["torch"]["version"] == torch.__version__
    assert found["torch"]["threads"] == torch.get_num_threads()
    assert found["python"].endswith(".".join(map(str, sys.version_info[:3])))


def test_json_has_the_documented_keys() -> None:
    _, found = run_json()
    assert set(found) == {
        "relakit", "python", "system", "machine", "cpu", "native", "torch", "backends",
        "default_backend", "problems", "works",
    }  # fmt: skip
    assert set(found["native"]) == {"compiler", "cpu_features", "problems", "works"}
    assert set(found["backends"][0]) == {"name", "description", "problems", "works"}


def test_a_backend_that_is_not_available_gives_its_reasons(install) -> None:
    install(Stub(broken, unavailable=["needs AVX-512", "needs Linux"]))
    code, found = run_json()
    assert status(found, "stub")["problems"] == ["needs AVX-512", "needs Linux"]
    assert code == 0, "another backend serves the default call"
    assert found["default_backend"] != "stub"


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        (wrong, "differs from the reference by up to"),
        (nan, "differs from the reference by up to nan"),
        (broken, "RuntimeError: the kernel fell over"),
    ],
)
def test_a_backend_that_misbehaves_does_not_work(run, problem: str, install) -> None:
    install(Stub(run))
    code, found = run_json()
    entry = status(found, "stub")
    assert entry["works"] is False
    assert problem in entry["problems"][0]
    # The stub comes first, so it is also what a call without a backend's name would get.
    assert found["default_backend"] == "stub"
    assert found["works"] is False
    assert problem in found["problems"][0]
    assert code == 1


def test_without_torch_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_torch() -> doctor.Torch:
        raise OSError("libtorch_cpu.so: cannot open shared object file")

    monkeypatch.setattr(doctor, "examine_torch", no_torch)
    code, found = run_json()
    assert code == 1
    assert found["torch"] is None
    assert found["backends"] == []
    assert "libtorch_cpu.so: cannot open shared object file" in found["problems"][0]


class TestNativeExtension:
    def test_reports_features_where_it_is_built(self) -> None:
        native = pytest.importorskip("relakit._native")
        found = doctor.examine_native()
        assert found.problems == []
        assert found.compiler == native.compiler()
        assert found.cpu_features == native.cpu_features()

    def test_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # None in sys.modules is how Python marks a module that must not be found.
        monkeypatch.setitem(sys.modules, "relakit._native", None)
        found = doctor.examine_native()
        assert found.compiler is None
        assert "relakit._native" in found.problems[0]
        assert "C++17 compiler" in found.problems[1]

    @pytest.mark.skipif(
        not Path("/proc/cpuinfo").is_file(), reason="compares with Linux' /proc/cpuinfo"
    )
    def test_features_agree_with_linux(self) -> None:
        native = pytest.importorskip("relakit._native")
        flags = set(Path("/proc/cpuinfo").read_text().split())
        # Linux spells these differently.
        linux_names = {"sse4.2": "sse4_2", "neon": "asimd"}
        for name, usable in native.cpu_features().items():
            assert usable == (linux_names.get(name, name) in flags), name


class TestRender:
    def text(self, diagnosis: doctor.Diagnosis) -> str:
        output = io.StringIO()
        doctor.render(diagnosis, Console(file=output, width=200))
        return output.getvalue()

    def test_shows_every_backend_and_the_default(self) -> None:
        diagnosis = doctor.examine()
        text = self.text(diagnosis)
        for backend in diagnosis.backends:
            assert backend.description in text
        assert f"ReLU attention works (backend {diagnosis.default_backend})" in text

    def test_shows_reasons_verbatim(self) -> None:
        """Brackets in a message are not taken for markup."""
        diagnosis = doctor.examine()
        ill = replace(diagnosis.backends[0], problems=["shape [2, 3] is [red]wrong"])
        text = self.text(replace(diagnosis, backends=[ill], problems=["no [bold]backend"]))
        assert "- shape [2, 3] is [red]wrong" in text
        assert "Attention does not work: no [bold]backend" in text
        assert "ReLU attention works" not in text

    def test_without_extension_and_torch(self) -> None:
        diagnosis = doctor.examine()
        native = doctor.NativeExtension(compiler=None, cpu_features={}, problems=["no such file"])
        text = self.text(replace(diagnosis, native=native, torch=None, backends=[]))
        assert "not available: no such file" in text
        assert "cannot be imported" in text

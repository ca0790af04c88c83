"""`relakit doctor`: its verdicts on backends that work, fail, differ or are not available."""

import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor
from typer.testing import CliRunner

from relakit.bench.rounds import Spread
from relakit.cli import doctor, doctor_checks, doctor_speed
from relakit.cli.doctor_speed import SpeedCase, SpeedVerdict
from relakit.cli.main import app
from relakit.ops import attention as ops_attention
from relakit.ops import backends as attention_backends
from relakit.ops.backends import BACKENDS, Backend
from relakit.ops.call import AttentionResult


class Stub(Backend):
    """A backend that serves ReLU in the way that a test needs."""

    name = "stub"
    description = "a backend for tests"
    activations = ("relu",)

    def __init__(self, run: Any = None, unavailable: list[str] | None = None) -> None:
        self._run = run
        self._unavailable = unavailable or []

    def unavailable(self) -> list[str]:
        return self._unavailable

    def refusals(self, call: Any) -> list[str]:
        return []

    def run(self, call: Any) -> tuple[Tensor, Tensor | None]:
        return self._run(call)


def wrong(call: Any) -> AttentionResult:
    return AttentionResult(torch.full_like(call.query, 7.0))


def nan(call: Any) -> AttentionResult:
    return AttentionResult(torch.full_like(call.query, float("nan")))


def broken(call: Any) -> AttentionResult:
    raise RuntimeError("the kernel fell over")


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch):
    """Put a stub in front of the real backends."""

    def install(stub: Stub) -> None:
        registered = {stub.name: stub, **BACKENDS}
        monkeypatch.setattr(attention_backends, "BACKENDS", registered)
        # Calls without options go to the kernels directly, past all backends.
        monkeypatch.setattr(ops_attention, "_in_extension", lambda *_: None)

    return install


def run_json() -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    return result.exit_code, json.loads(result.stdout)


def status(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(entry for entry in found["backends"] if entry["name"] == name)


def choice(found: dict[str, Any], activation: str) -> dict[str, Any]:
    return next(entry for entry in found["choices"] if entry["activation"] == activation)


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("RELAKIT_BACKEND", "RELAKIT_CPU_ISA"):
        monkeypatch.delenv(variable, raising=False)


def test_a_sound_installation() -> None:
    code, found = run_json()
    assert code == 0
    assert found["works"] is True
    assert found["problems"] == []
    assert [entry["name"] for entry in found["backends"]] == list(BACKENDS)
    assert choice(found, "relu")["backend"] in ("native", "reference")
    assert choice(found, "softmax")["backend"] == "sdpa"
    assert found["environment"] == []
    assert status(found, "reference")["works"] is True
    assert found["torch"]["version"] == torch.__version__
    assert found["torch"]["threads"] == torch.get_num_threads()
    assert found["python"].endswith(".".join(map(str, sys.version_info[:3])))


def test_json_has_the_documented_keys() -> None:
    _, found = run_json()
    assert set(found) == {
        "relakit", "python", "system", "machine", "cpu", "native", "torch", "environment",
        "backends", "choices", "translation", "problems", "works",
    }  # fmt: skip
    assert set(found["native"]) == {"compiler", "cpu_features", "kernels", "problems", "works"}
    assert set(found["backends"][0]) == {
        "name", "description", "activations", "problems", "works",
    }  # fmt: skip
    assert set(found["choices"][0]) == {
        "activation", "backend", "passed_over", "problems", "works",
    }  # fmt: skip


def test_a_backend_that_is_not_available_gives_its_reasons(install) -> None:
    install(Stub(broken, unavailable=["needs AVX-512", "needs Linux"]))
    code, found = run_json()
    assert status(found, "stub")["problems"] == ["needs AVX-512", "needs Linux"]
    assert code == 0, "another backend serves the default call"
    relu = choice(found, "relu")
    assert relu["backend"] != "stub"
    assert relu["passed_over"]["stub"] == ["needs AVX-512", "needs Linux"]


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
    assert choice(found, "relu")["backend"] == "stub"
    assert found["works"] is False
    assert problem in found["problems"][0]
    assert code == 1


class TestEnvironment:
    def test_a_backend_that_is_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RELAKIT_BACKEND", "reference")
        code, found = run_json()
        assert code == 0
        assert found["environment"] == [
            {"variable": "RELAKIT_BACKEND", "value": "reference", "problems": [], "works": True}
        ]
        softmax = choice(found, "softmax")
        assert softmax["backend"] == "reference"
        assert softmax["passed_over"] == {
            "sdpa": ["it could, but RELAKIT_BACKEND says reference"],
            "native": [
                *BACKENDS["native"].unavailable(),
                "it computes relu, sparsemax, entmax15, not 'softmax'",
            ],
        }

    def test_what_translates(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("relakit._native")
        monkeypatch.delenv("RELAKIT_BACKEND", raising=False)
        found = run_json()[1]
        assert found["translation"].startswith(f"in C++ ({found['native']['kernels'][0]})")
        monkeypatch.setenv("RELAKIT_BACKEND", "reference")
        assert "in PyTorch, not in C++" in run_json()[1]["translation"]
        monkeypatch.setenv("RELAKIT_BACKEND", "cuda")
        assert run_json()[1]["translation"].startswith("not possible: unknown backend 'cuda'")

    def test_a_backend_that_cannot_serve_relu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RELAKIT_BACKEND", "sdpa")
        code, found = run_json()
        assert code == 1
        assert choice(found, "softmax")["backend"] == "sdpa"
        relu = choice(found, "relu")
        assert relu["backend"] is None
        assert "it computes softmax, not 'relu'" in relu["problems"][0]
        assert relu["passed_over"]["reference"] == ["it could, but RELAKIT_BACKEND says sdpa"]

    def test_unknown_values(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RELAKIT_BACKEND", "cuda")
        monkeypatch.setenv("RELAKIT_CPU_ISA", "sse9")
        code, found = run_json()
        assert code == 1
        backend, isa = found["environment"]
        assert "unknown backend 'cuda' (from RELAKIT_BACKEND" in backend["problems"][0]
        assert "RELAKIT_CPU_ISA" in isa["problems"][0]
        assert status(found, "native")["works"] is False
        assert status(found, "reference")["works"] is True

    def test_an_instruction_set_without_the_extension(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "relakit._native", None)
        monkeypatch.setenv("RELAKIT_CPU_ISA", "avx2")
        (setting,) = doctor_checks.examine_environment()
        assert setting.problems == ["RELAKIT_CPU_ISA has no effect: there is no C++ extension"]

    def test_what_is_in_the_tables_is_not_logged(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(attention_backends, "_logged", set())
        monkeypatch.setenv("RELAKIT_CPU_ISA", "sse9")
        code, _ = run_json()
        assert code == 0, "the reference serves the call"
        assert caplog.records == []


def test_without_torch_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_torch() -> doctor_checks.Torch:
        raise OSError("libtorch_cpu.so: cannot open shared object file")

    monkeypatch.setattr(doctor_checks, "examine_torch", no_torch)
    code, found = run_json()
    assert code == 1
    assert found["torch"] is None
    assert found["backends"] == []
    assert "libtorch_cpu.so: cannot open shared object file" in found["problems"][0]


class TestNativeExtension:
    def test_reports_features_where_it_is_built(self) -> None:
        native = pytest.importorskip("relakit._native")
        found = doctor_checks.examine_native()
        assert found.problems == []
        assert found.compiler == native.compiler()
        assert found.cpu_features == native.cpu_features()
        assert found.kernels == native.usable_isas()
        assert found.kernels[-1] == "portable"

    def test_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # None in sys.modules is how Python marks a module that must not be found.
        monkeypatch.setitem(sys.modules, "relakit._native", None)
        found = doctor_checks.examine_native()
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
    def text(self, found: doctor_checks.Diagnosis) -> str:
        output = io.StringIO()
        doctor.render(found, Console(file=output, width=200))
        return output.getvalue()

    def test_shows_every_backend_and_the_default(self) -> None:
        found = doctor_checks.examine()
        text = self.text(found)
        for backend in found.backends:
            assert backend.description in text
        for choice in found.choices:
            for reasons in choice.passed_over.values():
                assert "; ".join(reasons) in text
        assert "ReLU attention works" in text

    def test_shows_reasons_verbatim(self) -> None:
        """Brackets in a message are not taken for markup."""
        found = doctor_checks.examine()
        ill = replace(found.backends[0], problems=["shape [2, 3] is [red]wrong"])
        text = self.text(replace(found, backends=[ill], problems=["no [bold]backend"]))
        assert "- shape [2, 3] is [red]wrong" in text
        assert "Attention does not work: no [bold]backend" in text
        assert "ReLU attention works" not in text

    def test_without_extension_and_torch(self) -> None:
        found = doctor_checks.examine()
        native = doctor_checks.NativeExtension(
            compiler=None, cpu_features={}, kernels=[], problems=["no such file"]
        )
        text = self.text(replace(found, native=native, torch=None, backends=[]))
        assert "not available: no such file" in text
        assert "cannot be imported" in text

    def test_shows_the_environment(self) -> None:
        setting = doctor_checks.Setting(
            variable="RELAKIT_X", value="seven", problems=["[no] seven"]
        )
        text = self.text(replace(doctor_checks.examine(), environment=[setting]))
        assert re.search(r"RELAKIT_X +seven", text)
        assert "In the environment: [no] seven" in text


class TestSpeed:
    @pytest.fixture
    def measured(self, monkeypatch: pytest.MonkeyPatch) -> None:
        verdict = SpeedVerdict(
            cases=[SpeedCase(what="a case", zeros=90.0, ratio=Spread(2.0, 1.9, 2.1))],
            sentence="ReLA is faster.",
            reasons=["a reason"],
        )
        monkeypatch.setattr(doctor_speed, "measure_speed", lambda tell: verdict)

    def test_it_is_measured_only_if_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(doctor_speed, "measure_speed", lambda tell: pytest.fail("measured"))
        assert "time / ReLA" not in CliRunner().invoke(app, ["doctor"]).output

    def test_for_people(self, measured: None) -> None:
        output = CliRunner().invoke(app, ["doctor", "--speed"]).output
        assert "2.00" in output
        assert "1.90-2.10" in output
        assert output.endswith("ReLA is faster.\n- a reason\n")

    def test_as_json(self, measured: None) -> None:
        found = json.loads(CliRunner().invoke(app, ["doctor", "--speed", "--json"]).output)
        assert found["speed"]["cases"][0]["ratio"]["median"] == 2.0
        assert found["speed"]["sentence"] == "ReLA is faster."

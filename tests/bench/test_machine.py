"""What a result says about the machine that it was measured on."""

import platform
from pathlib import Path

import pytest
import torch

from relakit.bench import machine
from relakit.files.reading import file_digest
from relakit.ops.backends import BACKENDS


def test_describes_this_machine() -> None:
    found = machine.describe_machine()
    assert found.torch == torch.__version__
    assert platform.release() not in found.system  # which would name the host's own build
    without_kernels = bool(BACKENDS["native"].unavailable())
    assert (found.rela_instructions is None, found.rela_build is None) == (without_kernels,) * 2


def test_names_the_build_of_the_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    extension = pytest.importorskip("relakit._native")
    before = machine.describe_machine().rela_build
    other = tmp_path / "other_build.so"
    other.write_bytes(b"compiled from other sources")
    monkeypatch.setattr(extension, "__file__", str(other))
    assert before != machine.describe_machine().rela_build == file_digest(other)


class TestCpuName:
    def test_reads_the_model_name(self, tmp_path: Path) -> None:
        cpuinfo = tmp_path / "cpuinfo"
        cpuinfo.write_text("processor\t: 0\nmodel name\t: Foo: 3 GHz\nmodel name\t: Bar\n")
        assert machine.cpu_name(cpuinfo) == "Foo: 3 GHz"

    @pytest.mark.parametrize("text", ["", "processor : 0\n", "model name :\n"])
    def test_falls_back_to_what_python_knows(
        self, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(machine.platform, "processor", lambda: "some processor")
        cpuinfo = tmp_path / "cpuinfo"
        cpuinfo.write_text(text)
        assert machine.cpu_name(cpuinfo) == "some processor"
        assert machine.cpu_name(tmp_path / "missing") == "some processor"

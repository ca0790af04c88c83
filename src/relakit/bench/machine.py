"""The machine that the numbers were measured on. Torch is loaded only when it is needed."""

import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from relakit.files.reading import file_digest


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Processor and versions that a result belongs to."""

    cpu: str
    system: str
    """Kind of operating system; the exact build says much about a host, little about a number."""
    relakit: str
    torch: str
    torch_instructions: str
    """The instruction set that PyTorch's own kernels use."""
    rela_instructions: str | None
    """The instruction set of relakit's native kernels; None where they cannot run."""
    rela_build: str | None = None
    """Digest of the kernels' file: kernels from other sources or another compiler round
    differently. None where they cannot run, and in results from before this was recorded."""


def describe_machine() -> Machine:
    import torch

    from relakit.ops.native.extension import choose_isa, load_extension, why_unavailable

    runs = not why_unavailable()
    return Machine(
        cpu=cpu_name(Path("/proc/cpuinfo")),
        system=f"{platform.system()} {platform.machine()}",
        relakit=version("relakit"),
        torch=torch.__version__,
        torch_instructions=torch.backends.cpu.get_cpu_capability(),
        rela_instructions=choose_isa() if runs else None,
        rela_build=file_digest(Path(str(load_extension().__file__))) if runs else None,
    )


def cpu_name(cpuinfo: Path) -> str:
    """The processor's name, from Linux's cpuinfo file, or else from Python."""
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or "unknown"

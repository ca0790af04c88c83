"""`relakit doctor`: what this machine has, and which attention backends work on it.

The facts are gathered first (`examine`) and printed afterwards, for people or as JSON. Torch is
imported only while gathering: the command line has to start fast, and to speak up when torch is
what is broken.
"""

import json
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relakit.bench.machine import cpu_name

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class NativeExtension:
    """The C++ extension `relakit._native`, or why it is not there."""

    compiler: str | None
    """The compiler that built it."""
    cpu_features: dict[str, bool]
    """Instruction sets by name, and whether this machine can use them."""
    problems: list[str]
    """Reasons why it cannot be imported (none: it is there)."""


@dataclass(frozen=True, kw_only=True)
class Torch:
    """PyTorch as it is installed here."""

    version: str
    cpu_capability: str
    """The instruction set that PyTorch's own kernels use."""
    threads: int
    cuda: str | None
    """The CUDA version that PyTorch was built for."""
    cuda_devices: list[str]
    """Names of the CUDA devices that PyTorch can use."""


@dataclass(frozen=True, kw_only=True)
class BackendStatus:
    """One attention backend, and the reasons why it does not work (none: it works)."""

    name: str
    description: str
    problems: list[str]


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Everything that `relakit doctor` reports."""

    relakit: str
    python: str
    system: str
    machine: str
    cpu: str
    native: NativeExtension
    torch: Torch | None
    backends: list[BackendStatus]
    default_backend: str | None
    """The backend that serves a ReLU attention call that names none."""
    problems: list[str]
    """Reasons why such a call does not work (none: relakit works)."""


def doctor(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
) -> None:
    """Show versions, the processor, and which attention backends work on this machine.

    Every backend that can run here is tried out and compared with the reference. The exit code is
    0 if attention works with the default settings, and 1 otherwise.
    """
    diagnosis = examine()
    if as_json:
        typer.echo(json.dumps(to_json(diagnosis), indent=2))
    else:
        render(diagnosis, Console(highlight=False))
    if diagnosis.problems:
        raise typer.Exit(1)


def examine() -> Diagnosis:
    """Gather the facts. What is missing or broken becomes part of the findings."""
    torch = None
    backends: list[BackendStatus] = []
    default_backend = None
    try:
        torch = examine_torch()
    except (ImportError, OSError) as error:  # OSError: a shared library that does not load
        problems = [f"PyTorch cannot be imported: {error}"]
    else:
        backends = examine_backends()
        default_backend = find_default_backend()
        problems = try_out(activation="relu", backend=None)
    return Diagnosis(
        relakit=version("relakit"),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=platform.platform(),
        machine=platform.machine(),
        cpu=cpu_name(Path("/proc/cpuinfo")),
        native=examine_native(),
        torch=torch,
        backends=backends,
        default_backend=default_backend,
        problems=problems,
    )


def examine_native() -> NativeExtension:
    try:
        import relakit._native as native
    except ImportError as error:
        problems = [str(error)]
        if isinstance(error, ModuleNotFoundError):
            problems.append(
                "relakit was installed without its C++ extension, which happens where CMake or a "
                "C++17 compiler is missing or fails. To add it: install both, then reinstall "
                "relakit from source (pip -v shows the compiler's messages)"
            )
        return NativeExtension(compiler=None, cpu_features={}, problems=problems)
    return NativeExtension(
        compiler=native.compiler(), cpu_features=native.cpu_features(), problems=[]
    )


def examine_torch() -> Torch:
    import torch

    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return Torch(
        version=torch.__version__,
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
        threads=torch.get_num_threads(),
        cuda=torch.version.cuda,
        cuda_devices=[torch.cuda.get_device_name(i) for i in range(devices)],
    )


def examine_backends() -> list[BackendStatus]:
    from relakit.attention.backends import BACKENDS

    return [
        BackendStatus(
            name=name,
            description=backend.description,
            problems=backend.unavailable() or try_out(backend.example_activation, backend=name),
        )
        for name, backend in BACKENDS.items()
    ]


def find_default_backend() -> str | None:
    """The backend that serves a ReLU attention call which names none."""
    from relakit.attention.backends import choose_backend
    from relakit.attention.call import AttentionCall

    query, key, value = _trial_inputs()
    try:
        return choose_backend(AttentionCall(query=query, key=key, value=value), None).name
    except RuntimeError:  # none does
        return None


def try_out(activation: str, backend: str | None) -> list[str]:
    """Run a small attention call; the reasons why it fails or differs from the reference."""
    import torch

    from relakit.attention.functional import attention

    query, key, value = _trial_inputs()
    try:
        expected = attention(query, key, value, activation=activation, backend="reference")
        output = attention(query, key, value, activation=activation, backend=backend)
    except Exception as error:  # whatever goes wrong is what we are here to report
        return [f"a trial call failed: {type(error).__name__}: {error}"]
    if not torch.allclose(output, expected, rtol=1e-4, atol=1e-5):
        difference = (output - expected).abs().max().item()
        return [f"a trial call differs from the reference by up to {difference:.2g}"]
    return []


def _trial_inputs() -> tuple["Tensor", ...]:
    """Query, key and value: [batch 2, heads 3, positions 17, features 8], the same every time."""
    import torch

    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(2, 3, 17, 8, generator=generator) for _ in range(3))


def to_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain values, with a `works` beside every list of problems."""

    def with_verdict(value: Any) -> Any:
        if isinstance(value, list):
            return [with_verdict(item) for item in value]
        if isinstance(value, dict):
            result = {key: with_verdict(item) for key, item in value.items()}
            if "problems" in value:
                result["works"] = not value["problems"]
            return result
        return value

    plain: dict[str, Any] = with_verdict(asdict(diagnosis))
    return plain


def render(diagnosis: Diagnosis, console: Console) -> None:
    """Print the diagnosis for people."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    for label, value in _facts(diagnosis):
        facts.add_row(label, Text(value))
    console.print(facts)

    if diagnosis.backends:
        table = Table("backend", "works", "what it is, and what is wrong")
        for backend in diagnosis.backends:
            lines = [backend.description, *(f"- {problem}" for problem in backend.problems)]
            verdict = Text("no", style="red") if backend.problems else Text("yes", style="green")
            table.add_row(backend.name, verdict, Text("\n".join(lines)))
        console.print(table)

    for problem in diagnosis.problems:
        console.print(Text(f"Attention does not work: {problem}", style="bold red"))
    if not diagnosis.problems:
        console.print(Text(f"ReLU attention works (backend {diagnosis.default_backend})."))


def _facts(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    native, torch = diagnosis.native, diagnosis.torch
    facts = [
        ("relakit", diagnosis.relakit),
        ("Python", diagnosis.python),
        ("system", diagnosis.system),
        ("CPU", diagnosis.cpu),
    ]
    if native.problems:
        facts.append(("C++ extension", f"not available: {'. '.join(native.problems)}"))
    else:
        usable = [name for name, has_it in native.cpu_features.items() if has_it]
        missing = [name for name, has_it in native.cpu_features.items() if not has_it]
        facts += [
            ("C++ extension", f"built with {native.compiler}"),
            ("CPU has", " ".join(usable) or "no known instruction set"),
            ("CPU lacks", " ".join(missing) or "nothing we know of"),
        ]
    if torch is None:
        facts.append(("PyTorch", "cannot be imported"))
    else:
        cuda = ", ".join(torch.cuda_devices) or "no usable device"
        facts += [
            ("PyTorch", f"{torch.version}, {torch.cpu_capability}, {torch.threads} threads"),
            ("CUDA", f"{torch.cuda}: {cuda}" if torch.cuda else "not in this build of PyTorch"),
        ]
    return facts

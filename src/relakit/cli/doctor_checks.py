"""What `relakit doctor` checks: this machine, and which attention backends work on it.

Torch is imported only when the checks run: the command line must start fast, and must be able to
report that torch itself is broken.
"""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from relakit.bench.machine import cpu_name

if TYPE_CHECKING:
    from torch import Tensor

    from relakit.ops.backends import BackendName
    from relakit.ops.options import ActivationName


@dataclass(frozen=True, kw_only=True)
class NativeExtension:
    """The C++ extension `relakit._native`, or why it is missing."""

    compiler: str | None
    """The compiler that built it."""
    cpu_features: dict[str, bool]
    """Instruction sets by name, and whether this machine can use them."""
    kernels: list[str]
    """Instruction sets that it has kernels for and this machine can run, best first."""
    problems: list[str]
    """Reasons why it cannot be imported (none: it can)."""


@dataclass(frozen=True, kw_only=True)
class Torch:
    """The PyTorch that is installed here."""

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
    activations: list[str]
    """The activations that it computes."""
    problems: list[str]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """An environment variable that is set, and what is wrong with its value."""

    variable: str
    value: str
    problems: list[str]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which backend serves a plain call that names none, and why the others do not."""

    activation: str
    backend: str | None
    passed_over: Mapping["BackendName", list[str]]
    """The other backends, and why each of them was not chosen."""
    problems: list[str]
    """Reasons why there is no backend (none: there is one)."""


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
    environment: list[Setting]
    backends: list[BackendStatus]
    choices: list[Choice]
    translation: str
    """What translates: C++ or PyTorch, and why."""
    problems: list[str]
    """Reasons why a ReLU attention call that names no backend does not work (none: it does)."""


def examine() -> Diagnosis:
    """Run all checks. Whatever is missing or broken becomes part of the diagnosis."""
    torch = None
    environment: list[Setting] = []
    backends: list[BackendStatus] = []
    choices: list[Choice] = []
    translation = "not possible without PyTorch"
    try:
        torch = examine_torch()
    except (ImportError, OSError) as error:  # OSError: a shared library that does not load
        problems = [f"PyTorch cannot be imported: {error}"]
    else:
        environment = examine_environment()
        backends = examine_backends()
        choices = [examine_choice(activation) for activation in ("relu", "softmax")]
        translation = examine_translation()
        problems = try_out(activation="relu", backend=None)
    return Diagnosis(
        relakit=version("relakit"),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=platform.platform(),
        machine=platform.machine(),
        cpu=cpu_name(Path("/proc/cpuinfo")),
        native=examine_native(),
        torch=torch,
        environment=environment,
        backends=backends,
        choices=choices,
        translation=translation,
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
        return NativeExtension(compiler=None, cpu_features={}, kernels=[], problems=problems)
    return NativeExtension(
        compiler=native.compiler(),
        cpu_features=native.cpu_features(),
        kernels=native.usable_isas(),
        problems=[],
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
    from relakit.ops.backends import BACKENDS

    return [
        BackendStatus(
            name=name,
            description=backend.description,
            activations=list(backend.activations),
            problems=backend.unavailable()
            or [
                problem
                for activation in backend.activations
                for problem in try_out(activation, backend=name)
            ],
        )
        for name, backend in BACKENDS.items()
    ]


def examine_environment() -> list[Setting]:
    """The variables that choose a backend and its kernels, if they are set."""
    from relakit.ops.backends import backend_from_environment
    from relakit.ops.native.extension import BACKEND_VARIABLE, ISA_VARIABLE, choose_isa

    settings = []
    checks = {BACKEND_VARIABLE: backend_from_environment, ISA_VARIABLE: choose_isa}
    for variable, check in checks.items():
        value = os.environ.get(variable)
        if not value:
            continue
        problems = []
        try:
            check()
        except ValueError as error:
            problems.append(str(error))
        except ImportError:
            problems.append(f"{variable} has no effect: there is no C++ extension")
        settings.append(Setting(variable=variable, value=value, problems=problems))
    return settings


def examine_translation() -> str:
    """What translates: C++ or PyTorch, for a model that either could serve."""
    from relakit.decode.choose_engine import forbidden_by_environment
    from relakit.ops.native.extension import choose_isa, why_unavailable

    try:
        reasons = [*why_unavailable(), *forbidden_by_environment()]
    except ValueError as error:
        return f"not possible: {error}"
    if reasons:
        return f"in PyTorch, not in C++, and not in int8: {'; '.join(reasons)}"
    return f"in C++ ({choose_isa()}), fp32 and int8; in PyTorch for sparsemax, GELU and others"


def examine_choice(activation: "ActivationName") -> Choice:
    """Which backend serves a plain call with this activation."""
    from relakit.ops.backends import BACKENDS, choose_backend
    from relakit.ops.call import AttentionCall
    from relakit.ops.native.extension import BACKEND_VARIABLE

    query, key, value = _trial_inputs()
    call = AttentionCall(query=query, key=key, value=value, activation=activation)
    chosen, problems = None, []
    try:
        chosen = choose_backend(call, None).name
    except (RuntimeError, ValueError) as error:
        problems.append(str(error))
    named = os.environ.get(BACKEND_VARIABLE)
    verdict = (
        f"{BACKEND_VARIABLE} says {named}" if named else f"the order of preference says {chosen}"
    )
    passed_over = {
        name: backend.reasons_against(call) or [f"it could, but {verdict}"]
        for name, backend in BACKENDS.items()
        if name != chosen
    }
    return Choice(activation=activation, backend=chosen, passed_over=passed_over, problems=problems)


def try_out(activation: "ActivationName", backend: "BackendName | None") -> list[str]:
    """Run a small attention call; returns why it fails or differs from the reference."""
    import torch

    from relakit.ops.attention import attention

    query, key, value = _trial_inputs()
    try:
        expected = attention(query, key, value, activation=activation, backend="reference")
        output = attention(query, key, value, activation=activation, backend=backend)
    except Exception as error:  # doctor reports whatever goes wrong
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

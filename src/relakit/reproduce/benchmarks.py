"""The benchmarks behind Table 2 and Figure 2; they need a checkout of relakit."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relakit.files.writing import make_folder
from relakit.ops.native.extension import BACKEND_VARIABLE
from relakit.reproduce.speed import (
    DECODING,
    PYTORCH_DECODING,
    TRAINING,
    Speed,
    decoding_speed,
    decoding_speed_by_length,
    training_speed,
)
from relakit.reproduce.studies import COMPARED, Study


@dataclass(frozen=True)
class Benchmark:
    """A script and the result file that it writes."""

    script: Path
    result: Path
    """Path in the results folder"""
    is_complete: Callable[[Path], bool]
    """Whether a results folder has all that Table 2 and Figure 2 read from that file"""
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()

    def command(self, results: Path) -> list[str]:
        """The command that measures all attentions in float32, without the other toolkits."""
        what = ["--peers", "none", "--precision", "fp32", *self.options]
        return [sys.executable, str(self.script), *what, "--csv", str(results / self.result)]

    def in_words(self, results: Path) -> str:
        """The command as typed into a shell, without the interpreter."""
        variables = [f"{name}={value}" for name, value in self.environment]
        return " ".join([*variables, *self.command(results)[1:]])


def _has_all(speeds: Mapping[str, Speed]) -> bool:
    return set(COMPARED) <= speeds.keys()


def _has_lengths(results: Path) -> bool:
    by_length = decoding_speed_by_length(results)
    return bool(by_length) and all(map(_has_all, by_length.values()))


BENCHMARKS: Final = (
    Benchmark(
        Path("benchmarks") / "training.py",
        TRAINING,
        lambda results: _has_all(training_speed(results)),
    ),
    Benchmark(
        Path("benchmarks") / "decoding.py",
        DECODING,
        lambda results: _has_all(decoding_speed(results)) and _has_lengths(results),
    ),
    Benchmark(
        Path("benchmarks") / "decoding.py",
        PYTORCH_DECODING,
        lambda results: _has_all(decoding_speed(results, in_pytorch=True)),
        options=("--batch-size", "1", "--groups", "0"),
        environment=((BACKEND_VARIABLE, "reference"),),
    ),
)


def missing_benchmarks(studies: Iterable[Study], results: Path) -> list[Benchmark]:
    """The benchmarks that a study needs and whose result file lacks one of its numbers."""
    if not any(study.benchmark for study in studies):
        return []
    return [one for one in BENCHMARKS if not one.is_complete(results)]


def run_benchmark(benchmark: Benchmark, results: Path) -> str | None:
    """Run a benchmark; nothing else should be running. Returns what went wrong, if anything did."""
    if not benchmark.script.is_file():
        return (
            f"needs a checkout of relakit: there is no {benchmark.script} here; there, run "
            f"`{benchmark.in_words(results)}`"
        )
    make_folder((results / benchmark.result).parent)
    environment = {**os.environ, **dict(benchmark.environment)}
    status = subprocess.run(benchmark.command(results), env=environment, check=False).returncode
    return f"exit status {status} of `{benchmark.in_words(results)}`" if status else None

"""The benchmarks behind Table 2 and Figure 2; they need a checkout of relakit."""

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relakit.files.writing import make_folder
from relakit.ops.native.extension import BACKEND_VARIABLE
from relakit.reproduce.speed import DECODING, PYTORCH_DECODING, TRAINING, measured_attentions
from relakit.reproduce.studies import COMPARED, Study


@dataclass(frozen=True)
class Benchmark:
    """A script, and the result file that it writes."""

    script: Path
    result: Path
    """In the folder of results"""
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()

    def command(self, results: Path) -> list[str]:
        """All attentions in float32, without the other toolkits."""
        what = ["--peers", "none", "--precision", "fp32", *self.options]
        return [sys.executable, str(self.script), *what, "--csv", str(results / self.result)]

    def in_words(self, results: Path) -> str:
        """For a shell, without the interpreter."""
        variables = [f"{name}={value}" for name, value in self.environment]
        return " ".join([*variables, *self.command(results)[1:]])


BENCHMARKS: Final = (
    Benchmark(Path("benchmarks") / "training.py", TRAINING),
    Benchmark(Path("benchmarks") / "decoding.py", DECODING),
    Benchmark(
        Path("benchmarks") / "decoding.py",
        PYTORCH_DECODING,
        options=("--batch-size", "1", "--groups", "0"),
        environment=((BACKEND_VARIABLE, "reference"),),
    ),
)


def missing_benchmarks(studies: Iterable[Study], results: Path) -> list[Benchmark]:
    """Those that a study needs, and whose result file lacks one of the compared attentions."""
    if not any(study.benchmark for study in studies):
        return []
    return [
        one for one in BENCHMARKS if not set(COMPARED) <= measured_attentions(results / one.result)
    ]


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

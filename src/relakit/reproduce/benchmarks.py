"""The benchmarks behind Table 2 and Figure 2; they need a checkout of relakit."""

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relakit.files.writing import make_folder
from relakit.reproduce.speed import DECODING, TRAINING, measured_attentions
from relakit.reproduce.studies import COMPARED, Study


@dataclass(frozen=True)
class Benchmark:
    """A script, and the result file that it writes."""

    script: Path
    result: Path
    """In the folder of results"""

    def command(self, results: Path) -> list[str]:
        """All attentions in float32, without the other toolkits."""
        what = ["--peers", "none", "--precision", "fp32"]
        return [sys.executable, str(self.script), *what, "--csv", str(results / self.result)]


BENCHMARKS: Final = (
    Benchmark(Path("benchmarks") / "training.py", TRAINING),
    Benchmark(Path("benchmarks") / "decoding.py", DECODING),
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
    command = benchmark.command(results)
    if not benchmark.script.is_file():
        return (
            f"needs a checkout of relakit: there is no {benchmark.script} here; there, run "
            f"`{' '.join(command[1:])}`"
        )
    make_folder((results / benchmark.result).parent)
    status = subprocess.run(command, check=False).returncode
    return f"exit status {status} of `{' '.join(command[1:])}`" if status else None

"""The benchmarks are scripts beside each other, and so are the peers' workers: no packages."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS / "peers")]

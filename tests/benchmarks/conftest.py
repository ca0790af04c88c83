"""The peers' modules are scripts beside each other, not a package."""

import sys
from pathlib import Path

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"

sys.path.insert(0, str(PEERS))

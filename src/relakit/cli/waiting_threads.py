"""How PyTorch's threads wait for each other: must be settled before torch is loaded."""

import os
from collections.abc import MutableMapping
from typing import Final

WAITING: Final = {"GOMP_SPINCOUNT": "10000"}
"""OpenMP's threads spin so often, a fraction of a millisecond, before they sleep. Left to itself it
is 300,000, and on a machine that others use, too, most of the time is spent spinning
(benchmarks/busy_neighbour.py)."""
CHOSEN: Final = ("OMP_WAIT_POLICY", *WAITING)
"""Whoever sets one of these has chosen."""


def let_threads_sleep(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make waiting threads leave the processor to others soon, unless the user chose otherwise."""
    if not any(name in environment for name in CHOSEN):
        environment.update(WAITING)

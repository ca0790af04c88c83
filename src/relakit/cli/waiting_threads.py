"""How PyTorch's threads wait for each other: must be settled before torch is loaded."""

import os
from collections.abc import MutableMapping
from typing import Final

WAITING: Final = {"GOMP_SPINCOUNT": "1500"}
"""OpenMP's threads spin so often, for some 20 microseconds, before they sleep. Left to itself it is
300,000 times, and a machine that others use, too, spends most of its time spinning. Fewer turns
cost more where nobody else is there: results/benchmarks/busy_neighbour.csv."""
CHOSEN: Final = ("OMP_WAIT_POLICY", *WAITING)
"""Whoever sets one of these has chosen."""


def let_threads_sleep(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make waiting threads leave the processor to others soon, unless the user chose otherwise."""
    if not any(name in environment for name in CHOSEN):
        environment.update(WAITING)

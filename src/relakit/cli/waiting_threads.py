"""How PyTorch's threads wait for each other: must be set before torch is loaded."""

import os
from collections.abc import MutableMapping
from typing import Final

WAITING: Final = {"GOMP_SPINCOUNT": "1500"}
"""How often OpenMP's threads spin, for some 20 microseconds, before they sleep. By default it is
300,000 times, and a machine with other work to do spends most of its time spinning. Fewer spins
cost more on an otherwise idle machine: results/benchmarks/busy_neighbour.csv."""
CHOSEN: Final = ("OMP_WAIT_POLICY", *WAITING)
"""If the user has set one of these, it is left alone."""


def let_threads_sleep(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make waiting threads give up the processor soon, unless the user chose otherwise."""
    if not any(name in environment for name in CHOSEN):
        environment.update(WAITING)

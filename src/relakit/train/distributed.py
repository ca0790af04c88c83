"""One process or several: what `torchrun` started, as one world."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import torch
import torch.distributed as dist

from relakit.nn.arguments import check_usable
from relakit.train.main_process import process_count

PATIENCE: Final = timedelta(days=2)
"""How long processes wait for the main one, which prepares the corpus and scores on its own."""


@dataclass(frozen=True)
class World:
    """The processes that train together, and which of them this is."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes files and messages."""
        return self.rank == 0

    def sum(self, values: Sequence[float]) -> list[float]:
        """The sums of the values over all processes."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor)
        return [float(value) for value in tensor.tolist()]

    def wait(self) -> None:
        """Wait until all processes get here."""
        if self.size > 1:
            dist.barrier()


@contextmanager
def join_world(device: str = "auto") -> Iterator[World]:
    """Join the processes that ``torchrun`` started; without it, this is the only one.

    NCCL connects GPUs, gloo CPUs.
    """
    size = process_count()
    chosen = _device(device, int(os.environ.get("LOCAL_RANK", "0")))
    if size == 1:
        yield World(device=chosen)
        return
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    backend = "nccl" if chosen.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield World(dist.get_rank(), size, chosen)
    finally:
        dist.destroy_process_group()


def _device(name: str, local_rank: int) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device("cuda", local_rank) if name == "cuda" else torch.device(name)
    check_usable(device)
    return device

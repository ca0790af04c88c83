"""How many threads torch computes with. The first call loads torch, this module does not."""

from collections.abc import Iterator
from contextlib import contextmanager


def set_threads(number: int | None) -> None:
    """Compute with this many threads from now on; None or 0 leaves the number to torch."""
    if number:
        import torch

        torch.set_num_threads(number)


@contextmanager
def limited_threads(number: int) -> Iterator[None]:
    """A block in which torch computes with this many threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)

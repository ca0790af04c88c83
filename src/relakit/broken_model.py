"""A model whose numbers are none: its training has diverged, or its file is damaged."""

from collections.abc import Generator
from contextlib import contextmanager


class BrokenModelError(ValueError):
    """A model computes NaN or infinity."""

    def __init__(self, name: str = "the model") -> None:
        super().__init__(
            f"{name} computes NaN or infinity: its weights are broken, or its training has "
            "diverged; make a model of earlier checkpoints with relakit average, or train again "
            "with a lower learning rate"
        )


@contextmanager
def blamed_on(name: str) -> Generator[None, None, None]:
    """Say which model is broken, where it is known."""
    try:
        yield
    except BrokenModelError:
        raise BrokenModelError(name) from None

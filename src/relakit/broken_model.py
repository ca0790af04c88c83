"""The error for a model that computes NaN or infinity, such as one whose training diverged."""

from collections.abc import Generator
from contextlib import contextmanager


class BrokenModelError(ValueError):
    """A model computes NaN or infinity."""

    def __init__(self, name: str = "the model", *, where: str | None = None) -> None:
        """Name the model, and where the problem was found, such as ``pair 7``."""
        place = "" if where is None else f" in {where}"
        super().__init__(
            f"{name} computes NaN or infinity{place}: its weights are broken, or its training has "
            "diverged; make a model of earlier checkpoints with relakit average, or train again "
            "with a lower learning rate"
        )
        self.where = where


@contextmanager
def blamed_on(name: str) -> Generator[None, None, None]:
    """Put the model's name into a `BrokenModelError` that is raised in this block."""
    try:
        yield
    except BrokenModelError as error:
        raise BrokenModelError(name, where=error.where) from None

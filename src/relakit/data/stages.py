"""How slow work reports its progress to its caller."""

from collections.abc import Callable
from typing import TypeAlias

OnStage: TypeAlias = Callable[[str, int, int | None], None]
"""Called with what is being done, how many pairs are done, and how many there are, if known."""


def ignore_stage(stage: str, done: int, total: int | None) -> None:
    """Report nothing: the default."""

"""How long work tells its caller how far it is."""

from collections.abc import Callable
from typing import TypeAlias

OnStage: TypeAlias = Callable[[str, int, int | None], None]
"""Called with what is being done, how many pairs are done, and how many there are, if known."""


def ignore_stage(stage: str, done: int, total: int | None) -> None:
    """For callers who do not want to know."""

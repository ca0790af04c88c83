"""What a run of `relakit translate` gives."""

from collections.abc import Callable
from typing import NamedTuple


class Result(NamedTuple):
    status: int
    out: bytes
    err: bytes


Run = Callable[..., Result]

"""Stands for the package opusfilter where it is not installed: what a filter sees of it."""

import abc
from collections.abc import Iterable, Iterator
from typing import Any

CLEAN_LOW, CLEAN_HIGH = "clean_low", "clean_high"


class ConfigurationError(Exception):
    pass


class FilterABC(abc.ABC):
    def __init__(self, name: str | None = None, workdir: str = "", **kwargs: Any) -> None:
        self.name = name
        self.workdir = workdir
        assert not kwargs, "the real one ignores these, and logs a warning"

    @property
    @abc.abstractmethod
    def score_direction(self) -> str: ...

    @abc.abstractmethod
    def score(self, pairs: Iterable[Any]) -> Iterator[Any]: ...

    @abc.abstractmethod
    def accept(self, score: Any) -> bool: ...

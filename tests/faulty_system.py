"""A disk that is full, or a system that refuses, at one chosen step of writing."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from relakit.files import output_stream, writing

STEPS = ("open", "write", "fsync", "replace", "rename", "mkdir", "makedirs")
"""Everything that takes room on a disk, or a name."""


class FaultySystem:
    """Python's ``os``, but one step fails."""

    def __init__(self, fail_at: int, number: int) -> None:
        self.steps = 0
        self.has_failed = False
        self._fail_at = fail_at
        self._number = number

    def __getattr__(self, name: str) -> Any:
        function = getattr(os, name)
        if name not in STEPS:
            return function

        def counted(*arguments: Any, **options: Any) -> Any:
            self.steps += 1
            if self.steps == self._fail_at:
                self.has_failed = True
                raise OSError(self._number, os.strerror(self._number))
            return function(*arguments, **options)

        return counted


@contextmanager
def failing(fail_at: int, number: int = errno.ENOSPC) -> Iterator[FaultySystem]:
    """Have the step number ``fail_at`` of all writing fail, counted from 1."""
    system = FaultySystem(fail_at, number)
    with pytest.MonkeyPatch.context() as patch:
        for module in (writing, output_stream):
            patch.setattr(module, "os", system)
        yield system

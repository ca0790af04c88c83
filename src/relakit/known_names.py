"""Settings that are one of a few names, and the one answer to any other."""

from collections.abc import Collection
from typing import TypeVar

Name = TypeVar("Name", bound=str)


def known_name(what: str, given: object, names: Collection[Name]) -> Name:
    """The name, if it is one of those; ``what`` is named by it.

    Raises:
        ValueError: it is none of them; lists them all.
    """
    for name in names:
        if given == name:
            return name
    raise ValueError(f"unknown {what} {given!r}; choose one of {', '.join(names)}")

"""Settings that are one of a few names, and the one error for any other."""

from collections.abc import Collection
from typing import TypeVar

Name = TypeVar("Name", bound=str)


def known_name(what: str, given: object, names: Collection[Name]) -> Name:
    """The given name, if it is one of ``names``; ``what`` says what it names.

    Raises:
        ValueError: it is none of them; the message lists them all.
    """
    for name in names:
        if given == name:
            return name
    raise ValueError(f"unknown {what} {given!r}; choose one of {', '.join(names)}")

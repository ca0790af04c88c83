"""Choosing modules of a model by name."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

from torch import nn

Where: TypeAlias = str | Sequence[str] | Callable[[str, nn.Module], bool] | None
"""None (all), a pattern such as ``"decoder.*"``, several patterns, or a function of a module's name
and the module. In patterns ``*`` stands for any characters, dots included."""


def is_selected(where: Where, name: str, module: nn.Module) -> bool:
    """Whether ``where`` selects the module."""
    if where is None:
        return True
    if callable(where):
        return where(name, module)
    return any(fnmatchcase(name, pattern) for pattern in _patterns(where))


def check_patterns(where: Where, names: Sequence[str]) -> None:
    """Raise ValueError for a pattern that fits none of the names: it is a typing error."""
    if where is None or callable(where):
        return
    for pattern in _patterns(where):
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(
                f"no attention module is called {pattern!r}; the model has "
                f"{', '.join(names) or 'none'}"
            )


def _patterns(where: str | Sequence[str]) -> Sequence[str]:
    return [where] if isinstance(where, str) else where

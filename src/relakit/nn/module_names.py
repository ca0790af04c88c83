"""Selecting a model's modules by name, and naming them to the user."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from torch import nn

Where: TypeAlias = str | Sequence[str] | Callable[[str, nn.Module], bool] | None
"""None (all), a pattern such as ``"decoder.*"``, several patterns, or a function of a module's name
and the module. In patterns ``*`` stands for any characters, dots included."""


NOTHING_LIKE_IT: Final = "none of its classes has attention in its name"


def names_of_modules(model: nn.Module) -> dict[nn.Module, list[str]]:
    """Every module of the model with all its names; a shared module has several."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    names: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(module, []).append(plain_name(name))
    return names


def modules_by_name(model: nn.Module) -> dict[str, nn.Module]:
    """The model's modules by their plain names; what torch.compile has wrapped, not the wrapper."""
    return {
        plain_name(f"{name}.").removesuffix("."): module
        for name, module in model.named_modules(remove_duplicate=False)
    }


def plain_name(name: str) -> str:
    """A module's name without torch.compile's wrappers."""
    return name.replace("_orig_mod.", "")


def is_selected(where: Where, names: Sequence[str], module: nn.Module) -> bool:
    """Whether ``where`` selects the module, under any of its names."""
    if where is None:
        return True
    if callable(where):
        return any(where(name, module) for name in names)
    return any(fnmatchcase(name, pattern) for pattern in _patterns(where) for name in names)


def check_patterns(where: Where, names: Iterable[str], shown: Sequence[str]) -> None:
    """Raise ValueError for a pattern that matches none of the names: a typo.

    The error lists the names in ``shown``. TypeError for anything that is not a ``where`` at all.
    """
    if where is None:
        return
    if callable(where):
        _check_function(where)
        return
    names = list(names)
    for pattern in _patterns(where):
        if any(fnmatchcase(name, pattern) for name in names):
            continue
        hint = ""
        if any(name.startswith(f"{pattern}.") for name in names):
            hint = f" (did you mean {pattern + '.*'!r}?)"
        raise ValueError(
            f"no attention module is called {pattern!r}{hint}; the model has "
            f"{', '.join(shown) or 'none'}"
        )


def attention_like(names: Mapping[nn.Module, Sequence[str]]) -> str:
    """For a message: which of the modules are attention, going by their class names."""
    for module, (name, *_) in names.items():
        if _is_hugging_face(module):
            which, argument = ("it", "model") if not name else (f"model.{name}", f"model.{name}")
            return (
                f"{which} is a Hugging Face model: call relakit.hf.convert({argument}), with the "
                "same arguments (see docs/huggingface.md)"
            )
    by_class: dict[str, list[str]] = {}
    for module, (name, *_) in names.items():
        if is_named_attention(module):
            by_class.setdefault(type(module).__name__, []).append(name or "the model itself")
    if not by_class:
        return NOTHING_LIKE_IT
    shown = [
        f"{kind} ({first}{f' and {len(more)} more' if more else ''})"
        for kind, (first, *more) in by_class.items()
    ]
    return (
        "what looks like attention, and could call relakit.attention itself or be made known with "
        f"relakit.register_attention (see docs/conversion.md): {', '.join(shown)}"
    )


def is_named_attention(module: nn.Module) -> bool:
    """Whether the module is attention, going by its class name."""
    kind = type(module).__name__.lower()
    return "attention" in kind or "attn" in kind or isinstance(module, nn.MultiheadAttention)


def _is_hugging_face(module: nn.Module) -> bool:
    # By name, because the package may be missing.
    return any(
        kind.__name__ == "PreTrainedModel" and kind.__module__.startswith("transformers.")
        for kind in type(module).__mro__
    )


def _check_function(where: Callable[[str, nn.Module], bool]) -> None:
    if isinstance(where, nn.Module):
        raise TypeError(
            f"where must be None, a pattern, a list of patterns or a function, got a module, "
            f"{type(where).__name__}; give its name"
        )
    try:
        signature = inspect.signature(where)
    except ValueError:  # unknown for a function written in C
        return
    try:
        signature.bind("name", where)
    except TypeError:
        raise TypeError(
            "where must be a function of two arguments, a module's name and the module, got one "
            f"with {signature}"
        ) from None


def _patterns(where: str | Sequence[str]) -> Sequence[str]:
    patterns = [where] if isinstance(where, str) else where
    if not isinstance(patterns, Sequence) or not all(isinstance(p, str) for p in patterns):
        raise TypeError(
            f"where must be None, a pattern, a list of patterns or a function, got {where!r}"
        )
    return patterns

"""Which module classes `convert_attention` can convert, and how: each has an adapter."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from torch import nn

from relakit.nn.variants import AttentionSpec

Adapter: TypeAlias = Callable[[Any, AttentionSpec], nn.Module]
"""Takes a module and an attention, and returns the module that replaces it."""

Kind = TypeVar("Kind", bound=nn.Module)

_adapters: Final[dict[type[nn.Module], Adapter]] = {}

_adapters_by_name: Final[dict[str, Adapter]] = {}
"""Adapters for classes of optional packages, by module and class name."""

_made: Final[set[type[nn.Module]]] = set()


def register_attention(kind: type[nn.Module], adapter: Adapter) -> None:
    """Teach `relakit.convert_attention` a class of attention modules.

    Subclasses that do not change ``forward`` are converted too. An adapter that was registered for
    the same class earlier is replaced. docs/conversion.md has an example.

    Args:
        kind: the class.
        adapter: a function that takes a module of that class and an `AttentionSpec`, and returns
            the module that replaces it. The new module should take over the projections
            themselves, not copies, and store the spec in an attribute ``attention``: that is how a
            second conversion knows what the module has. `relakit.AttentionCore` computes
            everything between the projections.
    """
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise TypeError(f"kind must be a class of modules, got {kind!r}")
    if not callable(adapter):
        raise TypeError(f"adapter must be a function of a module and a spec, got {adapter!r}")
    if issubclass(kind, nn.MultiheadAttention) and kind.forward is nn.MultiheadAttention.forward:
        raise ValueError(f"{kind.__name__} is converted already, as torch.nn.MultiheadAttention is")
    _adapters[kind] = adapter


def register_by_name(name: str, adapter: Adapter) -> None:
    """The same for a class of an optional package: ``"timm.layers.attention.Attention"``."""
    _adapters_by_name[name] = adapter


def adapter_for(module: nn.Module) -> Adapter | None:
    """The adapter that converts the module; None if there is none."""
    forward = type(module).forward
    for kind in type(module).__mro__:
        if getattr(kind, "forward", None) is not forward:
            return None
        adapter = _adapters.get(kind) or _adapters_by_name.get(
            f"{kind.__module__}.{kind.__qualname__}"
        )
        if adapter is not None:
            return adapter
    return None


def is_adapted(module: nn.Module) -> bool:
    """Whether an adapter has returned a module of its class."""
    return type(module) in _made


def adapt(module: nn.Module, spec: AttentionSpec, adapter: Adapter) -> nn.Module:
    """What the adapter turns the module into; TypeError if that is not a module."""
    new = adapter(module, spec)
    if not isinstance(new, nn.Module):
        raise TypeError(
            f"the adapter for {type(module).__name__} must return a module, got "
            f"{type(new).__name__}"
        )
    _made.add(type(new))
    return new


def taken_over(module: nn.Module, kind: type[Kind]) -> Kind:
    """A module of class ``kind`` with the parts, hooks, mode and settings of an existing one.

    Parameters stay the same objects, so an optimizer that holds them keeps working.

    Raises:
        ValueError: the module does not use the ``forward`` of its class.
    """
    if "forward" in vars(module):
        raise ValueError(
            f"the {type(module).__name__} has got a forward of its own (from hooks of another "
            "library, for example), which would go on computing the old attention; convert the "
            "model before that"
        )
    new = kind.__new__(kind)
    new.__dict__.update(module.__dict__)
    new.__dict__.pop("_compiled_call_impl", None)  # Module.compile: it calls the old module
    # Dictionaries that will get new entries are copied. Hooks stay shared: a handle removes its
    # hook from the dictionary that it was added to.
    for name in ("_parameters", "_buffers", "_modules"):
        new.__dict__[name] = dict(module.__dict__[name])
    return new

"""Which modules of a model compute attention through transformers' interface."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType

from torch import nn
from transformers import PreTrainedModel

from relakit.nn.module_names import is_named_attention, names_of_modules

_INTERFACE = "ALL_ATTENTION_FUNCTIONS"


def interface_modules(model: PreTrainedModel) -> dict[nn.Module, list[str]]:
    """Modules that look up their attention function by ``config._attn_implementation``."""
    all_modules = names_of_modules(model)
    kinds = {type(module) for module in all_modules if not isinstance(module, PreTrainedModel)}
    users = {kind for kind in kinds if _uses_interface(kind)}
    return {module: names for module, names in all_modules.items() if type(module) in users}


def passed_over(
    model: PreTrainedModel, found: Mapping[nn.Module, Sequence[str]]
) -> dict[nn.Module, str]:
    """Attention outside the interface, going by class names, each with its first module name."""
    within = {part for module in found for part in module.modules()}
    others = {}
    for module, (name, *_) in names_of_modules(model).items():
        if isinstance(module, PreTrainedModel) or module in within:
            continue
        contains_some = any(part in found for part in module.modules())
        if is_named_attention(module) and not contains_some and _has_parameters(module):
            others[module] = name
    outer = _outermost(list(others.values()))
    return {module: name for module, name in others.items() if name in outer}


def needs_additive_masks(model: PreTrainedModel, module: nn.Module) -> bool:
    """Whether a module outside the interface is in a model that gives it additive masks.

    Only models that support SDPA can use boolean masks.
    """
    return any(
        isinstance(part, PreTrainedModel) and not part._supports_sdpa and module in part.modules()
        for part in model.modules()
    )


def in_words(modules: Mapping[nn.Module, str]) -> str:
    """For a message: the classes, each with the name of its first module."""
    by_class: dict[str, list[str]] = {}
    for module, name in modules.items():
        by_class.setdefault(type(module).__name__, []).append(name)
    return ", ".join(
        f"{kind} ({first}{f' and {len(more)} more' if more else ''})"
        for kind, (first, *more) in by_class.items()
    )


def _has_parameters(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None


def _outermost(names: Sequence[str]) -> set[str]:
    """The names that do not lie inside another one."""
    return {name for name in names if not any(name.startswith(f"{other}.") for other in names)}


def _uses_interface(kind: type[nn.Module]) -> bool:
    return any(
        _INTERFACE in code.co_names
        for base in kind.__mro__
        if base is not nn.Module
        for attribute in vars(base).values()
        for code in _codes(getattr(inspect.unwrap(attribute), "__code__", None))
    )


def _codes(code: CodeType | None) -> Iterator[CodeType]:
    """The code of a function and of the functions inside it."""
    if isinstance(code, CodeType):
        yield code
        for constant in code.co_consts:
            yield from _codes(constant if isinstance(constant, CodeType) else None)

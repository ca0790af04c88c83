"""Which modules of a model compute attention through the interface of transformers."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType

from torch import nn
from transformers import PreTrainedModel

from relakit.nn.module_names import is_named_attention, names_of_modules

_INTERFACE = "ALL_ATTENTION_FUNCTIONS"


def interface_modules(model: PreTrainedModel) -> dict[nn.Module, list[str]]:
    """Modules that look their attention function up by ``config._attn_implementation``."""
    all_modules = names_of_modules(model)
    kinds = {type(module) for module in all_modules if not isinstance(module, PreTrainedModel)}
    users = {kind for kind in kinds if _uses_interface(kind)}
    return {module: names for module, names in all_modules.items() if type(module) in users}


def passed_over(model: PreTrainedModel, found: Mapping[nn.Module, Sequence[str]]) -> str:
    """Attention by the names of their classes that is outside of the interface; "" if none is."""
    within = {part for module in found for part in module.modules()}
    by_class: dict[str, list[str]] = {}
    for module, (name, *_) in names_of_modules(model).items():
        if isinstance(module, PreTrainedModel) or module in within:
            continue
        contains_some = any(part in found for part in module.modules())
        if is_named_attention(module) and not contains_some and _has_parameters(module):
            by_class.setdefault(type(module).__name__, []).append(name)
    outer = _outermost([name for names in by_class.values() for name in names])
    shown = []
    for kind, names in by_class.items():
        outside = [name for name in names if name in outer]
        if outside:
            more = f" and {len(outside) - 1} more" if len(outside) > 1 else ""
            shown.append(f"{kind} ({outside[0]}{more})")
    return ", ".join(shown)


def _has_parameters(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None


def _outermost(names: Sequence[str]) -> set[str]:
    """Without those that lie in another one."""
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
    """The code of a function, and of those inside of it."""
    if isinstance(code, CodeType):
        yield code
        for constant in code.co_consts:
            yield from _codes(constant if isinstance(constant, CodeType) else None)

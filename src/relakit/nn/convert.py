"""`convert_attention`: swap the attention of an existing model."""

import warnings
from collections.abc import Mapping
from typing import Final

from torch import nn

from relakit.nn.adapters import adapt, adapter_for, is_adapted, register_by_name
from relakit.nn.latecomers import why_not_trained
from relakit.nn.module_names import (
    NOTHING_LIKE_IT,
    Where,
    attention_like,
    check_patterns,
    is_selected,
    names_of_modules,
    plain_name,
)
from relakit.nn.multihead import MultiheadAttention
from relakit.nn.timm_attention import TIMM_ADAPTERS
from relakit.nn.variants import (
    DEFAULT_ATTENTION,
    AttentionName,
    AttentionSpec,
    resolve_attention,
)

_OURS: Final = ("attention", "backend", "norm", "not_fused", "threshold")
"""Attributes that a module has after conversion and PyTorch's does not have."""


for _name, _adapter in TIMM_ADAPTERS.items():
    register_by_name(_name, _adapter)


def convert_attention(
    model: nn.Module,
    attention: AttentionName | AttentionSpec = DEFAULT_ATTENTION,
    where: Where = None,
) -> list[str]:
    """Replace every `torch.nn.MultiheadAttention` in the model, in place.

    This includes the modules inside `torch.nn.Transformer` and its layers, the attention of timm's
    vision transformers, and classes registered with `relakit.register_attention`. The projections
    keep their weights, as the same parameter objects; the parameters that the attention adds (its
    norm's gain and gate, a learned threshold) are new. So convert before you build an optimizer or
    wrap the model in DistributedDataParallel: if you already have, a warning says so. There is also
    a warning if there is no module to convert, or if modules that look like attention are passed
    over.

    A module that already has this attention is left unchanged. A module that was converted to a
    different attention is converted again, and keeps its norm if both attentions have the same
    one. A module that is shared under several names is converted under all of them.

    Args:
        model: the model that contains the modules.
        attention: a name in `relakit.ATTENTIONS` or an `AttentionSpec`.
        where: which modules: None for all; a name or a pattern such as ``"decoder.*"``, or several;
            or a function of the name and the module.

    Returns:
        The names of the replaced modules, in the model's order; empty if there was nothing to do.

    Raises:
        ValueError: unknown attention, a pattern without a match, a model that is itself an
            attention module (use `relakit.MultiheadAttention.from_torch`), or a subclass of
            PyTorch's module with its own ``forward``.
    """
    spec = resolve_attention(attention)
    if isinstance(model, nn.MultiheadAttention):
        raise ValueError(
            "the model is itself an attention module and cannot be replaced in place; use "
            "relakit.MultiheadAttention.from_torch(module, attention)"
        )
    modules = names_of_modules(model)
    if adapter_for(model) is not None:
        raise ValueError(
            f"the model is itself an attention module, {type(model).__name__}, and cannot be "
            "replaced in place; convert the model that contains it, such as nn.ModuleList([module])"
        )
    found = {m: names for m, names in modules.items() if _is_known(m)}
    all_names = [name for names in found.values() for name in names]
    check_patterns(where, all_names, shown=all_names)
    selected = [(m, names) for m, names in found.items() if is_selected(where, names, m)]
    if not found:
        warnings.warn(
            f"there is no torch.nn.MultiheadAttention in {type(model).__name__}, so nothing was "
            f"converted; {attention_like(modules)}",
            stacklevel=2,
        )
    elif where is None:
        others = attention_like(_passed_over(modules, found))
        if others != NOTHING_LIKE_IT:
            warnings.warn(f"some modules were passed over: {others}", stacklevel=2)
    elif not selected:
        warnings.warn(
            "where selects none of the attention modules, so nothing was converted; the model has "
            f"{', '.join(all_names)}",
            stacklevel=2,
        )
    chosen = [(m, names) for m, names in selected if getattr(m, "attention", None) != spec]
    for module, names in chosen:
        _check_convertible(names[0], module)
    before = set(model.parameters())
    replacements = {module: _converted(names[0], module, spec) for module, names in chosen}
    changed = []
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if module in replacements:
            parent, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(parent), attribute, replacements[module])
            changed.append(plain_name(name))
    if changed:
        _stop_nested_tensors(model)
        for reason in why_not_trained(model, before):
            warnings.warn(reason, stacklevel=2)
    return changed


def is_pytorchs_own(module: nn.Module) -> bool:
    """Whether the module computes what `nn.MultiheadAttention` computes, subclass or not."""
    return (
        isinstance(module, nn.MultiheadAttention)
        and type(module).forward is nn.MultiheadAttention.forward
    )


def _is_known(module: nn.Module) -> bool:
    return (
        isinstance(module, nn.MultiheadAttention)
        or adapter_for(module) is not None
        or is_adapted(module)
    )


def _converted(name: str, module: nn.Module, spec: AttentionSpec) -> nn.Module:
    adapter = adapter_for(module)
    try:
        if adapter is None:
            assert isinstance(module, nn.MultiheadAttention)  # `_is_known` said so
            return MultiheadAttention.from_torch(module, spec)
        return adapt(module, spec, adapter)
    except ValueError as error:
        raise ValueError(f"{name} cannot be converted: {error}") from error


def _passed_over(
    modules: Mapping[nn.Module, list[str]], found: Mapping[nn.Module, list[str]]
) -> dict[nn.Module, list[str]]:
    """The modules that are not in ``found``, contain no such module, and are not part of one."""
    inside = {part for module in found for part in module.modules()}
    return {
        module: names
        for module, names in modules.items()
        if module not in inside and not any(part in inside for part in module.modules())
    }


def _check_convertible(name: str, module: nn.Module) -> None:
    if type(module) is MultiheadAttention or adapter_for(module) is not None:
        return
    if is_adapted(module):
        raise ValueError(
            f"{name} is a {type(module).__qualname__}, which an adapter made for another "
            "attention; to convert it again, register an adapter for that class too"
        )
    if not is_pytorchs_own(module):
        raise ValueError(
            f"{name} is a {type(module).__qualname__}, a subclass of MultiheadAttention "
            "with a forward of its own, which conversion would drop; leave it out with "
            "where=lambda name, module: ..."
        )
    for attribute in _OURS:
        if hasattr(module, attribute):
            raise ValueError(
                f"{name} is a {type(module).__qualname__} with an attribute {attribute!r} of its "
                "own, which conversion would replace; leave it out with "
                "where=lambda name, module: ..."
            )


def _stop_nested_tensors(model: nn.Module) -> None:
    """Keep encoders with a converted layer from passing it nested tensors.

    In eval mode `nn.TransformerEncoder` packs padded input into a nested tensor, which only its
    fused softmax layers understand. It decides this by looking only at its first layer.
    """
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder) and any(
            isinstance(part, MultiheadAttention) for part in module.modules()
        ):
            module.use_nested_tensor = False

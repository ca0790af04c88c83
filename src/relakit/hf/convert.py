"""`convert`: change the attention of a Hugging Face model in one line."""

import warnings
from collections.abc import Mapping
from itertools import chain

import torch
from torch import nn
from transformers import PreTrainedModel

from relakit.hf import registration
from relakit.hf.interface_modules import (
    in_words,
    interface_modules,
    needs_additive_masks,
    passed_over,
)
from relakit.hf.own_configs import own_configs
from relakit.hf.parts import CHILD, HeadSizes, head_sizes, parts_of
from relakit.hf.saved_choice import SOFTMAX, write_choice
from relakit.nn.core import AttentionParts
from relakit.nn.latecomers import why_not_trained
from relakit.nn.module_names import Where, check_patterns, is_selected, names_of_modules
from relakit.nn.variants import (
    DEFAULT_ATTENTION,
    AttentionName,
    AttentionSpec,
    resolve_attention,
)


def convert(
    model: PreTrainedModel,
    attention: AttentionName | AttentionSpec = DEFAULT_ATTENTION,
    where: Where = None,
) -> list[str]:
    """Give the attention modules of a Hugging Face model a different attention, in place.

    This works for every module that looks up its attention in transformers' interface. Projections,
    position encodings and caches stay unchanged; what the attention adds (its norm's gain and gate,
    a learned threshold) becomes a child of the module, called ``rela``. So convert before you build
    an optimizer; a warning says if there already is one. The choice is stored in ``model.config``,
    so that ``save_pretrained`` and `relakit.hf.from_pretrained` preserve it. The model gets its own
    copy of the config that it was created from, so convert the whole model: if you convert only a
    part, the model that contains it does not know.

    ::

        model = AutoModelForCausalLM.from_pretrained(folder)
        relakit.hf.convert(model)

    Args:
        model: the model.
        attention: a name in `relakit.ATTENTIONS` or an `AttentionSpec`.
        where: which modules, as in `relakit.convert_attention`; None for all. The others keep
            their attention.

    Returns:
        The names of the modules that changed, in the model's order.

    Raises:
        TypeError: not a model of transformers.
        ValueError: unknown attention, a pattern without a match, a model whose attention does not
            go through the interface, or a module whose sizes cannot be determined.
    """
    spec = resolve_attention(attention)
    if not isinstance(model, PreTrainedModel):
        raise TypeError(
            f"model must be a transformers.PreTrainedModel, got {type(model).__name__}; "
            f"{_other_way(model)}"
        )
    found = _checked_modules(model)
    all_names = [name for names in found.values() for name in names]
    check_patterns(where, all_names, shown=all_names)
    specs = {}
    for module, names in found.items():
        parts = parts_of(module)
        specs[module] = SOFTMAX if parts is None else parts.attention
        if is_selected(where, names, module):
            specs[module] = spec
    changed = [
        name
        for module, names in found.items()
        if (parts := parts_of(module)) is None or parts.attention != specs[module]
        if is_selected(where, names, module)
        for name in names
    ]
    if not any(is_selected(where, names, module) for module, names in found.items()):
        warnings.warn(
            "where selects none of the attention modules, so nothing was converted; the model has "
            f"{', '.join(all_names)}",
            stacklevel=2,
        )
        return []
    before = set(model.parameters())
    own_configs(model)
    attach(model, specs)
    for reason in why_not_trained(model, before):
        warnings.warn(reason, stacklevel=2)
    return changed


def attach(model: PreTrainedModel, specs: Mapping[nn.Module, AttentionSpec]) -> None:
    """Give each of the modules its attention, and note it in the model's configs.

    Nothing is changed if one of the modules cannot have its attention.
    """
    found = interface_modules(model)
    new = {}
    for module, spec in specs.items():
        old = parts_of(module)
        if old is None or old.attention != spec:
            new[module] = _build_parts(model, found[module][0], module, spec, old)
    registration.register()
    before = model.config._attn_implementation
    model.set_attn_implementation(registration.NAME)
    unreached = {m: found[m][0] for m in specs if _implementation(m) != registration.NAME}
    if unreached:
        model.set_attn_implementation(before)
        raise ValueError(
            f"{type(model).__name__} cannot be converted: set_attn_implementation does not reach "
            f"{in_words(unreached)}"
        )
    for module, parts in new.items():
        module.add_module(CHILD, parts)
    _write_choices(model, {module: (found[module][0], spec) for module, spec in specs.items()})


def _write_choices(
    model: PreTrainedModel, chosen: Mapping[nn.Module, tuple[str, AttentionSpec]]
) -> None:
    """Note the attention of every module in the configs of the model and of its parts.

    A part, such as the text model of CLIP, can be saved and loaded alone, so its config lists
    modules by their names within the part.
    """
    specs = dict(chosen.values())
    noted = set()
    for part, (name, *_) in names_of_modules(model).items():
        if isinstance(part, PreTrainedModel) and id(part.config) not in noted:
            start = f"{name}." if name else ""
            within = {n.removeprefix(start): s for n, s in specs.items() if n.startswith(start)}
            if within:
                write_choice(part.config, within)
                noted.add(id(part.config))
    for module in chosen:
        # Configs of modules outside such parts; without a choice they would look unconverted.
        if id(module.config) not in noted:
            write_choice(module.config, specs)
            noted.add(id(module.config))


def _implementation(module: nn.Module) -> object:
    """The name of the attention that the module will look up."""
    return getattr(getattr(module, "config", None), "_attn_implementation", None)


def _other_way(model: object) -> str:
    """What to do with a model that is none of transformers."""
    parts = model.named_modules() if isinstance(model, nn.Module) else ()
    inner = next((name for name, part in parts if isinstance(part, PreTrainedModel)), None)
    if inner is None:
        return "relakit.convert_attention converts other models"
    return f"convert its part {inner!r}, which is one, before it is wrapped"


def _checked_modules(model: PreTrainedModel) -> dict[nn.Module, list[str]]:
    """The modules to convert; a warning names any attention that is not among them."""
    found = interface_modules(model)
    others = passed_over(model, found)
    if not found:
        raise ValueError(
            f"{type(model).__name__} cannot be converted: its attention does not go through "
            f"transformers' attention interface ({in_words(others) or 'no class is named so'})"
        )
    misled = {m: name for m, name in others.items() if needs_additive_masks(model, m)}
    if misled:
        raise ValueError(
            f"{type(model).__name__} cannot be converted: some of its attention does not go "
            "through transformers' attention interface, and would misread the masks of the "
            f"attention that does: {in_words(misled)}"
        )
    if others:
        warnings.warn(
            f"some attention of {type(model).__name__} does not go through transformers' attention "
            f"interface and stays as it is: {in_words(others)}",
            stacklevel=3,
        )
    return found


def _build_parts(
    model: PreTrainedModel,
    name: str,
    module: nn.Module,
    spec: AttentionSpec,
    old: AttentionParts | None,
) -> AttentionParts:
    needs_sizes = spec.norm != "none" or spec.threshold == "learned"
    sizes = head_sizes(name, module) if needs_sizes else HeadSizes(1, 1)
    device, dtype = _device_and_dtype(model, module)
    parts = AttentionParts(spec, *sizes, device=device, dtype=dtype)
    if old is not None:
        parts.keep_from(old)
    return parts.train(module.training)


def _device_and_dtype(
    model: PreTrainedModel, module: nn.Module
) -> tuple[torch.device | None, torch.dtype]:
    """The module's device and precision; the model's precision if the module is quantized."""
    tensors = chain(module.parameters(), module.buffers(), model.parameters())
    device = next((tensor.device for tensor in tensors), None)
    dtypes = (p.dtype for p in chain(module.parameters(), model.parameters()))
    # Weights of 8 bits or less may be floats too, but are not precise enough to train a gain.
    dtype = next((d for d in dtypes if d.is_floating_point and d.itemsize > 1), None)
    return device, torch.get_default_dtype() if dtype is None else dtype

"""`from_pretrained`: load a model that was converted."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, Final

import transformers
from torch import nn
from transformers import AutoConfig, PreTrainedModel

from relakit.hf import registration
from relakit.hf.convert import attach
from relakit.hf.interface_modules import interface_modules
from relakit.hf.parts import CHILD
from relakit.hf.saved_choice import SOFTMAX, read_choice
from relakit.nn.variants import AttentionSpec

_FOR_CONFIG: Final = ("cache_dir", "local_files_only", "revision", "subfolder", "token")
"""Arguments of transformers that say where the files are; reading the config needs them too."""


def from_pretrained(
    folder: str | PathLike[str], model_class: type[Any] | None = None, **kwargs: Any
) -> Any:
    """Load a model that `relakit.hf.convert` changed and ``save_pretrained`` saved.

    Args:
        folder: what ``from_pretrained`` of transformers takes.
        model_class: a class of transformers, or an Auto class; that of the saved model if None.
        **kwargs: for ``from_pretrained`` of transformers.

    Returns:
        The model; with ``output_loading_info=True`` also the information, as in transformers.

    Raises:
        ValueError: the model was not converted, is of an unknown class, or lacks weights that
            conversion adds.
    """
    registration.register()
    config = kwargs.pop("config", None)
    if config is None:
        where = {name: kwargs[name] for name in _FOR_CONFIG if name in kwargs}
        config = AutoConfig.from_pretrained(folder, **where)
    specs = read_choice(config)
    kind = class_to_load(config, model_class)
    wants_info = kwargs.pop("output_loading_info", False)
    model, info = _with_parts(kind, specs).from_pretrained(
        folder,
        config=config,
        attn_implementation=registration.NAME,
        output_loading_info=True,
        **kwargs,
    )
    model.__class__ = kind
    missing = sorted(key for key in info["missing_keys"] if f".{CHILD}." in f".{key}")
    if missing:
        raise ValueError(
            f"{folder} has no weights for {len(missing)} parameters of the converted attention, "
            f"such as {missing[0]}; was it saved after relakit.hf.convert?"
        )
    return (model, info) if wants_info else model


def class_to_load(config: Any, model_class: type[Any] | None = None) -> type[PreTrainedModel]:
    """The class of a saved model, or the one that an Auto class has for it."""
    if model_class is None:
        name = (getattr(config, "architectures", None) or [""])[0]
        kind = getattr(transformers, name, None) if name else None
        if kind is None:
            raise ValueError(
                f"the config names the class {name!r}, which transformers does not have; give "
                "model_class=..."
            )
    elif issubclass(model_class, PreTrainedModel):
        kind = model_class
    else:
        mapping = getattr(model_class, "_model_mapping", {})
        if type(config) not in mapping:
            raise ValueError(
                f"model_class must be a model class of transformers, or an Auto class that knows "
                f"{type(config).__name__}, got {model_class.__name__}"
            )
        kind = mapping[type(config)]
        if isinstance(kind, tuple):
            kind = kind[0]
    assert issubclass(kind, PreTrainedModel)
    return kind


def _with_parts(
    kind: type[PreTrainedModel], specs: Mapping[str, AttentionSpec]
) -> type[PreTrainedModel]:
    """The class with converted attention, so that it has all parameters when weights are loaded."""

    def __init__(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        kind.__init__(self, config, *args, **kwargs)
        attach(self, _specs_by_module(self, specs))

    # transformers finds what it knows about a class by these names.
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), {"__init__": __init__, **names})


def _specs_by_module(
    model: PreTrainedModel, specs: Mapping[str, AttentionSpec]
) -> dict[nn.Module, AttentionSpec]:
    """Modules by their saved names, which may be those of a model with or without a head."""
    found = interface_modules(model)
    by_name = {name: module for module, names in found.items() for name in names}
    prefix = f"{model.base_model_prefix}."
    chosen = dict.fromkeys(found, SOFTMAX)
    for name, spec in specs.items():
        module = by_name.get(name) or by_name.get(prefix + name)
        module = module or by_name.get(name.removeprefix(prefix))
        if module is not None:
            chosen[module] = spec
    if specs and all(spec == SOFTMAX for spec in chosen.values()):
        raise ValueError(
            f"none of the converted modules is in {type(model).__name__}: {', '.join(specs)}"
        )
    return chosen

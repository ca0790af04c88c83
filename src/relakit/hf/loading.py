"""`from_pretrained`: load a converted model."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, Final

import transformers
from torch import nn
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from relakit.hf import registration
from relakit.hf.convert import attach
from relakit.hf.interface_modules import interface_modules
from relakit.hf.parts import CHILD
from relakit.hf.saved_choice import SOFTMAX, read_choice
from relakit.nn.variants import AttentionSpec

_WHERE: Final = (
    "cache_dir",
    "force_download",
    "local_files_only",
    "proxies",
    "revision",
    "subfolder",
    "token",
    "trust_remote_code",
)
"""transformers' arguments about the files, which both config and weights need."""
_NOT_FOR_CONFIG: Final = ("dtype", "torch_dtype", "quantization_config")
"""Arguments that the config would keep for itself, although loading the weights needs them."""


def from_pretrained(
    folder: str | PathLike[str], model_class: type[Any] | None = None, **kwargs: Any
) -> Any:
    """Load a model that `relakit.hf.convert` changed and ``save_pretrained`` saved.

    Args:
        folder: anything that transformers' ``from_pretrained`` takes.
        model_class: a class of transformers, or an Auto class; the class of the saved model if
            None. It may be the class of a part, such as ``CLIPTextModel`` for a saved
            ``CLIPModel``.
        **kwargs: for transformers' ``from_pretrained``, including changes to the config, such as
            ``num_labels=5``.

    Returns:
        The model; with ``output_loading_info=True`` also the information, as in transformers.

    Raises:
        ValueError: the model was not converted or has an unknown class, its weights do not fit the
            attention in its config, or a different attention is requested.
    """
    registration.register()
    _check_implementation(kwargs.pop("attn_implementation", None))
    wants_info = kwargs.pop("output_loading_info", False)
    config, kwargs = _read_config(folder, model_class, kwargs)
    kind = class_to_load(config, model_class)
    config = _config_for(kind, config)
    specs = read_choice(config)
    model, info = _with_parts(kind, specs).from_pretrained(
        folder,
        config=config,
        output_loading_info=True,
        **kwargs,
    )
    model.__class__ = kind
    _check_weights(folder, model, info)
    return (model, info) if wants_info else model


def _check_implementation(name: object) -> None:
    if name not in (None, registration.NAME):
        raise ValueError(
            f"a converted model has attn_implementation={registration.NAME!r}, got {name!r}; leave "
            "it out, or load the model without its conversion, with transformers alone"
        )


def _read_config(
    folder: str | PathLike[str], model_class: type[Any] | None, kwargs: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The config with the changes that the arguments ask for, and the arguments for the model."""
    others = dict(kwargs)
    config = others.pop("config", None)
    if isinstance(config, PreTrainedConfig):
        return config, others
    kept: dict[str, Any] = {name: others.pop(name) for name in _NOT_FOR_CONFIG if name in others}
    kept |= {name: others[name] for name in _WHERE if name in others}
    # The class of a part reads the part's config, so that arguments change that config.
    reader = getattr(model_class, "config_class", None) or AutoConfig
    config, unused = reader.from_pretrained(
        folder if config is None else config, return_unused_kwargs=True, **others
    )
    return config, {**unused, **kept}


def _config_for(kind: type[PreTrainedModel], config: Any) -> Any:
    """The config, or the config within it that the class takes."""
    wanted = kind.config_class
    if wanted is None or isinstance(config, wanted):
        return config
    inner = [getattr(config, name, None) for name in config.sub_configs]
    return next((part for part in inner if isinstance(part, wanted)), config)


def _check_weights(folder: object, model: PreTrainedModel, info: Mapping[str, Any]) -> None:
    """Raise ValueError unless weights and config describe the same attention."""
    missing = sorted(key for key in info["missing_keys"] if f".{CHILD}." in f".{key}")
    if missing:
        raise ValueError(
            f"{folder} has no weights for {len(missing)} parameters of the converted attention, "
            f"such as {missing[0]}; was it saved after relakit.hf.convert?"
        )
    # Weights of modules that the model does not have belong to a part that was not requested.
    modules = _by_saved_name(model)
    unexpected = sorted(
        key for key in info["unexpected_keys"] if key.rpartition(f".{CHILD}.")[0] in modules
    )
    if unexpected:
        raise ValueError(
            f"{folder} has weights for {len(unexpected)} parameters that the attention in its "
            f"config does not have, such as {unexpected[0]}; save the model again, so that config "
            "and weights are of one conversion"
        )


def class_to_load(config: Any, model_class: type[Any] | None = None) -> type[PreTrainedModel]:
    """The class of a saved model, or the one that an Auto class maps it to."""
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
    if not (isinstance(kind, type) and issubclass(kind, PreTrainedModel)):
        raise ValueError(f"{getattr(kind, '__name__', kind)} is no model class of transformers")
    return kind


def _with_parts(
    kind: type[PreTrainedModel], specs: Mapping[str, AttentionSpec]
) -> type[PreTrainedModel]:
    """The class with converted attention, so that all parameters exist when weights are loaded."""

    def __init__(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        kind.__init__(self, config, *args, **kwargs)
        attach(self, _specs_by_module(self, specs))

    # transformers uses these names to find what it knows about a class.
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), {"__init__": __init__, **names})


def _specs_by_module(
    model: PreTrainedModel, specs: Mapping[str, AttentionSpec]
) -> dict[nn.Module, AttentionSpec]:
    """The attention of every module: softmax where the saved choice names nothing else."""
    modules = _by_saved_name(model)
    chosen = dict.fromkeys(modules.values(), SOFTMAX)
    for name, spec in specs.items():
        if name in modules:
            chosen[modules[name]] = spec
    if specs and all(spec == SOFTMAX for spec in chosen.values()):
        raise ValueError(
            f"none of the converted modules is in {type(model).__name__}: {', '.join(specs)}"
        )
    return chosen


def _by_saved_name(model: PreTrainedModel) -> dict[str, nn.Module]:
    """Modules by the names that they were saved with, in a model with or without a head."""
    names = {name: module for module, all_ in interface_modules(model).items() for name in all_}
    prefix = f"{model.base_model_prefix}."
    with_head = {prefix + name: module for name, module in names.items()}
    without = {name.removeprefix(prefix): module for name, module in names.items()}
    return {**without, **with_head, **names}

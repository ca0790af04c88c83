"""How the model's config, and so its ``config.json``, stores the attention of each module.

::

    "relakit_attention": [{"attention": "rela-g", "modules": ["model.layers.0.self_attn"]}]

Modules that are not listed have softmax. The key is in the config of every converted model, and in
the configs of its parts that have such modules.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from relakit.model.attention_setting import read_attention
from relakit.nn.variants import ATTENTIONS, AttentionSpec, resolve_attention

KEY: Final = "relakit_attention"

SOFTMAX: Final = ATTENTIONS["softmax"]


def is_converted(config: object) -> bool:
    """Whether the model with this config was converted."""
    return getattr(config, KEY, None) is not None


def write_choice(config: Any, specs: Mapping[str, AttentionSpec]) -> None:
    """Store the attention of every module, by name."""
    groups: dict[AttentionSpec, list[str]] = {}
    for name, spec in specs.items():
        if spec != SOFTMAX:
            groups.setdefault(spec, []).append(name)
    setattr(
        config, KEY, [{"attention": _plain(spec), "modules": ns} for spec, ns in groups.items()]
    )


def read_choice(config: Any) -> dict[str, AttentionSpec]:
    """The attention of every module, by name, except those with softmax.

    Raises:
        ValueError: the model was not converted, or the key holds something that `write_choice`
            does not write.
    """
    groups = getattr(config, KEY, None)
    if groups is None:
        raise ValueError(
            f"the model's config has no {KEY}: it was not converted by relakit; load it with "
            "transformers, and convert it with relakit.hf.convert(model)"
        )
    specs = {}
    try:
        for group in groups:
            setting: Any = read_attention(group["attention"])
            specs.update(dict.fromkeys(group["modules"], resolve_attention(setting)))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{KEY} in the model's config cannot be read: {error}") from None
    return specs


def _plain(spec: AttentionSpec) -> str | dict[str, Any]:
    """The spec in a form that JSON can store: its name if it has one."""
    setting = read_attention(spec)
    return setting if isinstance(setting, str) else asdict(setting)

"""An attention as recipes and ``config.json`` write it: a name of Table 1, or a table of settings.

``"rela-i"`` and ``{ threshold = "learned", power = 2 }`` are both settings. A table has the fields
of `AttentionSpec`; those it leaves out are ReLA-g's.
"""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Annotated, Final, TypeAlias

from pydantic import BeforeValidator

from relakit.nn.variants import ATTENTIONS, AttentionSpec

FIELDS: Final = tuple(field.name for field in fields(AttentionSpec))


def read_attention(setting: object) -> str | AttentionSpec:
    """Check a setting. A table that describes a named attention becomes its name."""
    if isinstance(setting, str):
        if setting not in ATTENTIONS:
            raise ValueError(
                f"unknown attention {setting!r}; choose one of {', '.join(ATTENTIONS)}, or give a "
                f"table with {', '.join(FIELDS)}"
            )
        return setting
    if isinstance(setting, Mapping):
        setting = _read_table(setting)
    if not isinstance(setting, AttentionSpec):
        raise ValueError(f"an attention is a name or a table, got {setting!r}")
    return next((name for name, spec in ATTENTIONS.items() if spec == setting), setting)


AttentionSetting: TypeAlias = Annotated[str | AttentionSpec, BeforeValidator(read_attention)]
"""The type of a setting in pydantic models."""


def _read_table(table: Mapping[str, object]) -> AttentionSpec:
    for key in table:
        if key not in FIELDS:
            raise ValueError(
                f"unknown key {key}{did_you_mean(key, FIELDS)}; known are {', '.join(FIELDS)}"
            )
    try:
        return AttentionSpec(**table)  # type: ignore[arg-type]  # AttentionSpec checks them
    except TypeError as error:
        raise ValueError(str(error)) from None


def write_attention(setting: str | AttentionSpec) -> str:
    """The text that people see: the name, or the shortest table that says the same."""
    if isinstance(setting, str):
        return setting
    given, usual = asdict(setting), asdict(AttentionSpec(norm=setting.norm))
    parts = {
        key: value
        for key, value in given.items()
        if key == "activation" or value != usual[key] or (key == "norm" and value != "rms")
    }
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in parts.items()) + " }"


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """The nearest choice, in brackets; empty if none is near."""
    near = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else ""

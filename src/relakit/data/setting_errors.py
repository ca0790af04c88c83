"""Explains in our own words what is wrong with a setting in a recipe or in ``config.json``."""

import reprlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel, ValidationError

_MUST: Final[Mapping[str, str]] = MappingProxyType(
    {
        "greater_than": "must be above {gt}",
        "greater_than_equal": "must be at least {ge}",
        "less_than": "must be below {lt}",
        "less_than_equal": "must be at most {le}",
        "literal_error": "must be {expected}",
        "finite_number": "must be a finite number",
        "too_long": "must have at most {max_length} values",
        "too_short": "must have at least {min_length} values",
        "int_from_float": "must be a whole number",
        "int_parsing": "must be a whole number",
        "int_parsing_size": "must be a whole number of fewer digits",
        "int_type": "must be a whole number",
        "float_parsing": "must be a number",
        "float_type": "must be a number",
        "bool_parsing": "must be true or false",
        "bool_type": "must be true or false",
        "string_type": "must be text",
        "path_type": "must be a path",
        "tuple_type": "must be a list",
        "list_type": "must be a list",
        "none_required": "must be left out",
        "dict_type": "must have keys and values",
        "model_type": "must have keys and values",
        "dataclass_type": "must have keys and values",
        "dataclass_exact_type": "must have keys and values",
        "model_attributes_type": "must have keys and values",
    }
)
"""Messages by pydantic's names for errors."""


def explain_setting(error: Mapping[str, Any], *, section: str = "") -> str:
    """One of pydantic's errors as key, value and problem; ``section`` is put before the key."""
    key = ".".join([*([section] if section else []), *map(str, error["loc"])])
    if error["type"] == "missing":
        return f"{key} is missing"
    if error["type"] == "extra_forbidden":
        return f"unknown key {key}"
    message, given = _message(error), error["input"]
    if isinstance(given, (dict, BaseModel)):
        return f"{key}: {message}" if key else message
    return f"{key} = {reprlib.repr(given)}: {message}"


def explain_document(error: ValidationError) -> str:
    """The first thing that is wrong with a JSON document."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return "it is no JSON, or is truncated"
    return explain_setting(first) if first["loc"] else f"it {_message(first)}"


def explain_value(error: Mapping[str, Any]) -> str:
    """One of pydantic's errors about a single value, whose name is given elsewhere."""
    return f"it {_message(error)}, got {reprlib.repr(error['input'])}"


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] not in _MUST:
        text = str(error["msg"]).removeprefix("Value error, ")
        return text.replace("Input should ", "must ", 1)
    values = {name: _number(value) for name, value in error.get("ctx", {}).items()}
    return _MUST[error["type"]].format_map(values)


def _number(value: object) -> object:
    """A limit, formatted as in all other messages: 1,000,000 and 0."""
    return (
        f"{value:,g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else value
    )

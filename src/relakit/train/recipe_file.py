"""Reading recipes: from TOML files, or by name if they come with relakit; ``--set key=value``.

A recipe may begin with ``like = "NAME"``: it then inherits all settings of that recipe that it does
not give itself.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError

from relakit.data.json_file import read_text
from relakit.data.setting_errors import explain_setting
from relakit.model.attention_setting import did_you_mean
from relakit.nn.variants import ATTENTIONS, AttentionName
from relakit.recipes import recipe_names
from relakit.train.recipe import Recipe

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def load_recipe(name_or_path: str, settings: Iterable[str] = ()) -> Recipe:
    """Read a recipe that comes with relakit by its name, or any recipe from a TOML file.

    Args:
        name_or_path: ``multi30k-small``, or a path that ends in ``.toml``.
        settings: override what the recipe says: ``training.epochs=3``. Values are written as in
            TOML; quotes around words may be left out. ``model.attention.power=2`` changes one field
            of an attention, whether the recipe has a table or a name.
    """
    where, content = _with_all_settings(name_or_path, ())
    _set_all(content, settings)
    return make_recipe(content, where)


def change_recipe(recipe: Recipe, settings: Iterable[str], where: str) -> Recipe:
    """A recipe with some settings changed, as in `load_recipe`; errors name ``where``."""
    content = recipe.model_dump(mode="json", exclude_none=True)
    _set_all(content, settings)
    return make_recipe(content, where)


def make_recipe(content: Mapping[str, Any], where: str) -> Recipe:
    """Validate a recipe; errors name ``where``."""
    try:
        return Recipe.model_validate(dict(content))
    except ValidationError as error:
        raise ValueError(f"{where}: {'; '.join(_explain(e) for e in error.errors())}") from None


def write_recipe(recipe: Recipe) -> str:
    """A recipe as TOML, with every setting."""
    content = recipe.model_dump(mode="json", exclude_none=True)
    sections = {key: value for key, value in content.items() if isinstance(value, dict)}
    lines = [f"{key} = {_toml(content[key])}" for key in content if key not in sections]
    for name, section in sections.items():
        lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in section.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(part)}' for key, part in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _with_all_settings(name_or_path: str, above: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """What to call a recipe in errors, and its content with what it inherits through ``like``.

    ``above`` lists the recipes that led here, each like the next.
    """
    where, text = _read(name_or_path)
    if where in above:
        raise ValueError(f"recipes are like each other in a circle: {', '.join((*above, where))}")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where} is no valid TOML: {error}") from None
    except RecursionError:
        raise ValueError(f"{where} is no recipe: it is nested too deeply") from None
    other = content.pop("like", None)
    if other is None:
        return where, content
    if not isinstance(other, str):
        raise ValueError(f"{where}: like = {other!r}: it must be the name of a recipe, or a file")
    if other.endswith(".toml"):  # a path is relative to the recipe that names it
        other = str(Path(name_or_path).parent / other)
    try:
        _, inherited = _with_all_settings(other, (*above, where))
    except (OSError, ValueError) as error:
        raise type(error)(f"{where} is like {other!r}: {error}") from None
    return where, _merged(inherited, content)


def _merged(inherited: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The settings of two recipes, merged table by table; the recipe's ``own`` take precedence."""
    merged = dict(inherited)
    _forget_other_places(merged, own)
    for key, value in own.items():
        before = merged.get(key)
        is_section = key in Recipe.model_fields
        if is_section and isinstance(before, dict) and isinstance(value, dict):
            merged[key] = _merged(before, value)
        else:
            merged[key] = value
    return merged


def _check_one_place(settings: Iterable[str]) -> None:
    """Raise ValueError if two data places are set: neither is meant to replace the other."""
    keys = {key for setting in settings if (key := setting.partition("=")[0].strip())}
    places = [f"data.{place}" for place in PLACES if f"data.{place}" in keys]
    if len(places) > 1:
        raise ValueError(f"--set {' and --set '.join(places)} exclude each other; give one of them")


PLACES: Final = ("prepared", "folder", "generated")
"""Where the data may be; setting one place replaces the recipe's own."""


def _forget_other_places(data: dict[str, Any], given: Iterable[str]) -> None:
    if any(place in given for place in PLACES):
        for place in PLACES:
            data.pop(place, None)


def _read(name_or_path: str) -> tuple[str, str]:
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.is_file():
        return str(path), read_text(path, "recipe")
    if name_or_path not in recipe_names():
        near = did_you_mean(name_or_path, recipe_names())
        raise ValueError(
            f"there is no recipe {name_or_path!r}{near}; choose one of "
            f"{', '.join(recipe_names())}, or name a file that ends in .toml"
        )
    resource = files("relakit.recipes") / f"{name_or_path}.toml"
    return f"recipe {name_or_path}", resource.read_text(encoding="utf-8")


def _set_all(content: dict[str, Any], settings: Iterable[str]) -> None:
    settings = list(settings)
    _check_one_place(settings)
    for setting in settings:
        _set(content, setting)


def _set(content: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise ValueError(f"--set needs key=value, such as training.epochs=3, got {setting!r}")
    section = content
    for part in parts[:-1]:
        value = section.setdefault(part, {})
        if isinstance(value, str) and value in ATTENTIONS:  # one of its settings is changed
            value = section[part] = asdict(ATTENTIONS[cast("AttentionName", value)])
        section = value
        if not isinstance(section, dict):
            raise ValueError(f"--set {setting}: {part} is a value and has no parts")
    if parts[:-1] == ["data"]:
        _forget_other_places(section, parts[-1:])
    section[parts[-1]] = _value(text.strip())


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text  # a word or a path without quotes


def _explain(error: Any) -> str:
    """One of pydantic's errors, in relakit's words."""
    parts = [str(part) for part in error["loc"]]
    key = ".".join(parts)
    if error["type"] == "extra_forbidden":
        known = _keys(parts[:-1])
        return f"unknown key {key}{did_you_mean(parts[-1], known)}; known are {', '.join(known)}"
    return explain_setting(error)


def _keys(path: list[str]) -> list[str]:
    """The keys of a recipe's section."""
    section: type[BaseModel] = Recipe
    for part in path:
        section = _model_of(section.model_fields[part].annotation)
    return list(section.model_fields)


def _model_of(annotation: Any) -> type[BaseModel]:
    if isinstance(annotation, UnionType):  # a section that may be None
        annotation = next(a for a in annotation.__args__ if a is not NoneType)
    section: type[BaseModel] = annotation
    return section


def describe_recipes() -> list[tuple[str, str]]:
    """Name and description of every recipe that comes with relakit."""
    return [
        (name, str(tomllib.loads(_read(name)[1]).get("description", ""))) for name in recipe_names()
    ]

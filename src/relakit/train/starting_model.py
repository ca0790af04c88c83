"""Fine-tuning: a run that starts with the weights, settings and tokenizer of a trained model."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from relakit.attention_kinds import ATTENTION_KINDS
from relakit.data.tokenizer import Tokenizer
from relakit.data.tokenizer_pair import (
    TOKENIZER_FILE,
    Tokenizers,
    are_same,
    exchanged,
    load_tokenizers,
)
from relakit.files.output_paths import MODEL as MODEL_DIRECTORY
from relakit.model.config import ModelConfig, sized
from relakit.model.description import ModelAbout, read_config
from relakit.train.recipe import DataSection, ModelSection, Recipe
from relakit.train.run_folder import MODEL

logger = logging.getLogger(__name__)

MAY_DIFFER: Final = frozenset({"dropout", "attention_dropout", "feed_forward_dropout"})
"""Settings that do not affect what a trained model computes: the recipe may choose."""


def with_starting_model(recipe: Recipe, before: Recipe | None = None) -> Recipe:
    """The recipe with all settings of the model that it starts from, if it names one.

    Args:
        recipe: with ``model.start_from``, a model directory or the folder of a run.
        before: the recipe of the run that already exists. If it has the same model, nothing is left
            to do, and the starting model need not exist any more.

    Raises:
        ValueError: the recipe contradicts the model; names both values.
        OSError: there is no such model.
    """
    if recipe.model.start_from is None:
        return recipe
    if before is not None and before.model == recipe.model:
        return recipe
    folder = find_model(recipe.model.start_from)
    config, about = read_config(folder)
    tokenizer = load_tokenizers(folder)
    config.check_tokenizer(tokenizer, str(folder / TOKENIZER_FILE), exactly=True)
    _check_corpus(recipe.data, folder, tokenizer)
    size, source_size = tokenizer.sizes
    kind = "joint" if source_size is None else "separate"
    _check_kind(recipe.data, folder, kind)
    if "vocab_size" in recipe.data.model_fields_set and recipe.data.vocab_size != size:
        logger.warning(
            "data.vocab_size = %s has no effect: the tokenizer of %s is kept, with %s tokens",
            f"{recipe.data.vocab_size:,}",
            folder,
            f"{size:,}",
        )
    return recipe.model_copy(
        update={
            "data": _with_languages(recipe.data, about, folder).model_copy(
                update={"vocabulary": kind}
            ),
            "model": _with_settings(recipe.model, config, folder),
        }
    )


def find_model(folder: Path) -> Path:
    """A model directory, given its own path or the folder of the run that made it."""
    if not MODEL_DIRECTORY.is_at(folder) and MODEL_DIRECTORY.is_at(folder / MODEL):
        return folder / MODEL
    if not MODEL_DIRECTORY.is_at(folder):
        raise FileNotFoundError(
            f"{folder} is neither a model directory nor a run with one: it has no "
            f"{MODEL_DIRECTORY.marker} and no {MODEL}/{MODEL_DIRECTORY.marker}"
        )
    return folder


def starting_tokenizers(recipe: Recipe) -> Callable[[], Tokenizers] | None:
    """A function that reads the tokenizers of the recipe's starting model, if it names one.

    A corpus that is used in reverse is prepared in the other direction.
    """
    start = recipe.model.start_from
    if start is None:
        return None

    def read() -> Tokenizers:
        found = load_tokenizers(start)
        return exchanged(found) if recipe.data.reverse else found

    return read


def _check_kind(data: DataSection, folder: Path, kind: str) -> None:
    if (data.prepared or "vocabulary" in data.model_fields_set) and data.vocabulary != kind:
        raise ValueError(
            f"the run cannot start from {folder}: data.vocabulary = {data.vocabulary!r}, the model "
            f"has {kind!r}; leave the key out"
        )


def _with_settings(given: ModelSection, model: ModelConfig, folder: Path) -> ModelSection:
    """All settings of the model, written out; from the recipe only those that may differ."""
    wanted = given.config(model.vocabulary, model.source_vocabulary)
    said = _said(given)
    conflicts = [
        f"{key} in the recipe means {name} = {_value(wanted, name)!r}, the model has "
        f"{_value(model, name)!r}"
        for name, key in said.items()
        if name not in MAY_DIFFER and _value(wanted, name) != _value(model, name)
    ]
    if conflicts:
        raise ValueError(
            f"the run cannot start from {folder}: {'; '.join(conflicts)}. Leave these keys out, "
            "and the model's own settings are used"
        )
    settings = model.model_dump(exclude={"vocabulary", "source_vocabulary"})
    settings.update({name: getattr(wanted, name) for name in MAY_DIFFER & said.keys()})
    return ModelSection(start_from=folder, size=given.size, attention=given.attention, **settings)


def _said(given: ModelSection) -> dict[str, str]:
    """The model settings that a recipe decides, each with the key that does."""
    said: dict[str, str] = {}
    keys = given.model_fields_set
    if "size" in keys:
        said.update(dict.fromkeys(sized(given.size), f"model.size = {given.size!r}"))
    if "attention" in keys:
        said.update({f"{kind}_attention": "model.attention" for kind in ATTENTION_KINDS})
    for key in sorted(keys - {"size", "attention", "start_from"}):
        if getattr(given, key) is not None:
            said[key] = f"model.{key}"
    return said


def _value(config: ModelConfig, name: str) -> Any:
    """A setting to compare and show: the same attention may be written as a name or a table."""
    for kind in ATTENTION_KINDS:
        if name == f"{kind}_attention":
            return config.attention(kind)
    return getattr(config, name)


def _check_corpus(data: DataSection, folder: Path, tokenizers: Tokenizers) -> None:
    """Raise ValueError for a corpus that was prepared with a different tokenizer."""
    if data.prepared is None:
        return
    found = load_tokenizers(data.prepared)
    other = exchanged(found) if data.reverse else found
    if not are_same(other, tokenizers):
        file = folder / TOKENIZER_FILE
        is_joint = isinstance(tokenizers, Tokenizer)
        again = f"prepare it again with --tokenizer {file}, or " if is_joint else ""
        raise ValueError(
            f"{data.prepared} was prepared with another tokenizer ({other.target.size:,} tokens) "
            f"than {folder} has ({tokenizers.target.size:,}); {again}name the text with data.folder"
        )


def _with_languages(data: DataSection, about: ModelAbout, folder: Path) -> DataSection:
    """The model's languages where the recipe names none; warns of others, as they may be meant."""
    sides = ("target", "source") if data.reverse else ("source", "target")
    languages = dict(zip(sides, (about.source_language, about.target_language), strict=True))
    known = {side: language for side, language in languages.items() if language is not None}
    named = data.model_fields_set
    if data.prepared is not None:
        named = named | known.keys()  # the corpus names them
    for side, language in known.items():
        if side in named and getattr(data, side) != language:
            logger.warning(
                "data.%s = %r, but %s was trained with %r", side, getattr(data, side), folder,
                language,
            )  # fmt: skip
    return data.model_copy(update={s: known[s] for s in known if s not in named})

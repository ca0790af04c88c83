"""What a model directory says about its model, read before torch is loaded or anything is built."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from relakit.data.json_file import read_json
from relakit.data.languages import LANGUAGES_FILE, LanguagePair
from relakit.data.setting_errors import explain_setting
from relakit.data.tokenizer_pair import (
    SOURCE_TOKENIZER_FILE,
    TOKENIZER_FILE,
    Tokenizers,
    load_tokenizers,
    tokenizer_files,
    tokenizers_digest,
)
from relakit.files.output_paths import MODEL, check_output_folder
from relakit.files.reading import file_digest
from relakit.model.config import ModelConfig
from relakit.model.weight_shapes import Shapes, check_sizes_of_weights, read_shapes

CONFIG_FILE: Final = MODEL.marker
WEIGHTS_FILE: Final = "model.safetensors"
ALIGNMENT_FILES: Final = (
    "alignment.json",
    "aligner.json",
    "aligner.safetensors",
    "aligner-2.safetensors",
)
"""What `relakit.align` adds to a model directory; the files belong to its model, and go with it."""
SHORTLIST_FILE: Final = "shortlist.safetensors"
"""What `relakit shortlist` adds: see `relakit.decode.shortlist`."""
PARTS: Final = (
    CONFIG_FILE,
    WEIGHTS_FILE,
    TOKENIZER_FILE,
    SOURCE_TOKENIZER_FILE,
    LANGUAGES_FILE,
    *ALIGNMENT_FILES,
    SHORTLIST_FILE,
)
"""The files that a model directory may have; not every directory has all of them."""
FORMAT: Final = "relakit-model"
VERSION: Final = 1
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class ModelAbout:
    """What a model directory says besides the model's shape."""

    source_language: str | None = None
    target_language: str | None = None
    training: dict[str, Any] = field(default_factory=dict)
    """How the model was trained; for people to read."""
    longest_sentence: int | None = None
    """Tokens of the longest sentence that it was trained on; None if not known."""
    tokenizer_sha256: str | None = field(default=None, compare=False)
    """Hash of the tokenizer's file, computed when the model is saved; None in older directories."""


def check_model_folder(
    folder: Path, *, replace: bool, advice: str = "choose another folder"
) -> None:
    """Refuse to write a model over anything but, with ``replace``, a model directory.

    ``advice`` tells the user what to do about anything else.
    """
    is_model = CONFIG_FILE in os.listdir(folder) if folder.is_dir() else False
    parts = PARTS if is_model else ()
    check_output_folder(folder, MODEL, parts=parts, replace=replace, advice=advice)


@dataclass(frozen=True)
class ModelDescription:
    """A model directory whose parts fit together, as far as can be told without building it."""

    folder: Path
    config: ModelConfig
    about: ModelAbout
    shapes: Shapes

    @property
    def weights(self) -> Path:
        return self.folder / WEIGHTS_FILE

    @cached_property
    def tokenizers(self) -> Tokenizers:
        """The tokenizer, or both tokenizers; read when first asked for."""
        return load_tokenizers(self.folder)

    def check_tokenizers(self) -> None:
        """Raise ValueError if a tokenizer is invalid, or its size is not the model's."""
        name = str(self.folder / TOKENIZER_FILE)
        self.config.check_tokenizer(self.tokenizers, name, exactly=True)

    def languages(self) -> LanguagePair | None:
        """What tells its languages from others; None if the directory has no such file."""
        path = self.folder / LANGUAGES_FILE
        return LanguagePair.load(path) if path.exists() else None


def read_description(folder: str | os.PathLike[str]) -> ModelDescription:
    """Read all but the weights; raise OSError or ValueError, naming the file, if it is broken."""
    folder = Path(folder)
    if not folder.is_dir():
        problem = "it is a file; name its folder" if folder.is_file() else "there is no such folder"
        raise FileNotFoundError(f"{folder} is no model directory: {problem}")
    config, about = read_config(folder)
    tokenizers = [TOKENIZER_FILE, *([SOURCE_TOKENIZER_FILE] if config.source_vocabulary else [])]
    for name in (*tokenizers, WEIGHTS_FILE):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} has no {name}; a model directory needs one")
    _check_tokenizer(folder, about)
    weights = folder / WEIGHTS_FILE
    shapes = read_shapes(weights)
    check_sizes_of_weights(config, folder / CONFIG_FILE, shapes, weights)
    return ModelDescription(folder, config, about, shapes)


def model_digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file that a model's results depend on."""
    names = (CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE, SOURCE_TOKENIZER_FILE, *ALIGNMENT_FILES)
    return {name: file_digest(folder / name) for name in names if (folder / name).is_file()}


def check_same_model(folder: Path, digests: Mapping[str, str]) -> None:
    """Raise ValueError if a folder does not hold the model with these `model_digests`."""
    found = model_digests(folder)
    names = [name for name in {**digests, **found} if digests.get(name) != found.get(name)]
    if names:
        raise ValueError(
            f"{folder} on {platform.node()} is not the model that the command began with: it has "
            f"another {' and '.join(names)}. Somebody has replaced it, or this is an old copy, and "
            "results of two models must not be mixed; put the same files there, or give the "
            "command a copy of the model that nobody writes to"
        )


def read_config(folder: Path) -> tuple[ModelConfig, ModelAbout]:
    """What ``config.json`` says, without the weights."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{path.parent} is no model directory: it has no {CONFIG_FILE}. `relakit train` writes "
            "its models to OUT/model"
        )
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        is_foreign = isinstance(content, dict) and "model_type" in content
        hint = "; `relakit analyze-text` looks at Hugging Face models" if is_foreign else ""
        raise ValueError(f'{path} is not of a relakit model: it has no "format": "{FORMAT}"{hint}')
    if content.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {content.get('version')!r} of the format, this relakit reads "
            f"version {VERSION}"
        )
    try:
        config = ModelConfig.model_validate(content.get("model"))
    except ValidationError as error:
        raise ValueError(f"{path}: {explain_setting(error.errors()[0], section='model')}") from None
    languages, training = content.get("languages") or {}, content.get("training") or {}
    for name, value in (("languages", languages), ("training", training)):
        if not isinstance(value, dict):
            raise ValueError(f"{path}: {name} must be an object, got {value!r}")
    longest = _optional(content, "longest_sentence", int, path)
    if longest is not None and longest < 1:
        raise ValueError(f"{path}: longest_sentence must be at least 1, got {longest}")
    about = ModelAbout(
        source_language=_optional(languages, "source", str, path, "languages."),
        target_language=_optional(languages, "target", str, path, "languages."),
        training=training,
        longest_sentence=longest,
        tokenizer_sha256=_optional(content, "tokenizer_sha256", str, path),
    )
    return config, about


def _optional(
    content: dict[str, Any], key: str, kind: type[Kind], path: Path, section: str = ""
) -> Kind | None:
    value = content.get(key)
    if value is not None and type(value) is not kind:
        what = "text" if kind is str else "a whole number"
        raise ValueError(f"{path}: {section}{key} must be {what}, got {value!r}")
    return value


def _check_tokenizer(folder: Path, about: ModelAbout) -> None:
    """Raise ValueError for a tokenizer of another model: it would give the wrong words."""
    found = tokenizers_digest(folder)
    path = " or ".join(map(str, tokenizer_files(folder)))
    if about.tokenizer_sha256 not in (None, found):
        raise ValueError(
            f"{path} is not the tokenizer that this model was trained with: its SHA-256 is "
            f"{found[:12]}..., {CONFIG_FILE} says {str(about.tokenizer_sha256)[:12]}...; put back "
            "the file that was there"
        )

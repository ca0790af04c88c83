"""A model on disk: ``config.json``, ``model.safetensors`` and ``tokenizer.json`` in one folder.

Nothing else is needed to use it, and nothing in it is executed. `relakit.data` reads and writes the
tokenizer's file; here it is only copied.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from torch import Tensor

from relakit.data.json_file import read_json
from relakit.data.tokenizer_pair import (
    SOURCE_TOKENIZER_FILE,
    TOKENIZER_FILE,
    TokenizerPair,
    save_tokenizers,
    tokenizer_files,
    tokenizers_digest,
)
from relakit.files.output_paths import MODEL, check_output_folder
from relakit.files.writing import whole_folder, write_whole
from relakit.model.config import ModelConfig
from relakit.model.setting_errors import explain_setting
from relakit.model.tensor_file import tensor_bytes, write_tensors
from relakit.model.transformer import Transformer
from relakit.model.weight_shapes import broken_weights, fitting_model, read_shapes
from relakit.nn.arguments import check_usable

CONFIG_FILE: Final = MODEL.marker
WEIGHTS_FILE: Final = "model.safetensors"
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
    """Tokens of the longest sentence that it was trained on; None: not known."""
    tokenizer_sha256: str | None = field(default=None, compare=False)
    """Of the tokenizer's file, found when the model is saved; None: an older directory."""


def check_model_folder(folder: Path, *, replace: bool) -> None:
    """Refuse to write a model over anything but, with ``replace``, a model directory."""
    is_model = CONFIG_FILE in os.listdir(folder) if folder.is_dir() else False
    parts = (CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE, SOURCE_TOKENIZER_FILE) if is_model else ()
    check_output_folder(folder, MODEL, parts=parts, replace=replace)


def save_model(
    folder: str | os.PathLike[str],
    model: Transformer,
    tokenizer: str | os.PathLike[str] | TokenizerPair,
    about: ModelAbout | None = None,
    *,
    weights: dict[str, Tensor] | None = None,
) -> Path:
    """Write a model directory, whole or not at all; an older one is replaced.

    Args:
        folder: the directory.
        model: what is saved.
        tokenizer: the file of its tokenizer, which is copied; or one for each language.
        about: what else the directory says.
        weights: saved instead of the model's own, if given: an average, for example.
    """
    folder = Path(folder)
    about = about or ModelAbout()
    check_model_folder(folder, replace=True)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "model": model.config.model_dump(),
        "languages": {"source": about.source_language, "target": about.target_language},
        "training": about.training,
        "longest_sentence": about.longest_sentence,
    }
    state = model.state_dict() if weights is None else weights
    copied = b"" if isinstance(tokenizer, TokenizerPair) else Path(tokenizer).read_bytes()
    with whole_folder(folder, size=tensor_bytes(state) + len(copied)) as unfinished:
        write_tensors(unfinished / WEIGHTS_FILE, state)
        if isinstance(tokenizer, TokenizerPair):
            save_tokenizers(unfinished, tokenizer)
        else:
            write_whole(unfinished / TOKENIZER_FILE, copied)
        content["tokenizer_sha256"] = tokenizers_digest(unfinished)
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        write_whole(unfinished / CONFIG_FILE, text.encode())
    return folder


def load_model(
    folder: str | os.PathLike[str], *, device: torch.device | str = "cpu"
) -> tuple[Transformer, ModelAbout]:
    """Read a model directory; if it is broken, raise OSError or ValueError with the file's name."""
    check_usable(device)
    folder = Path(folder)
    if not folder.is_dir():
        hint = "; name its folder" if folder.is_file() else ""
        raise FileNotFoundError(f"{folder} is no model directory{hint}")
    config, about = read_config(folder)
    names = [TOKENIZER_FILE, *([SOURCE_TOKENIZER_FILE] if config.source_vocabulary else [])]
    for name in names:
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} has no {name}; a model directory needs one")
    _check_tokenizer(folder, about)
    weights = folder / WEIGHTS_FILE
    model = fitting_model(config, folder / CONFIG_FILE, read_shapes(weights), weights)
    # Not initialised: that would draw random numbers, which the user may have set a seed for.
    model.to_empty(device="cpu")
    model.load_state_dict(read_weights(weights))
    model.embedding.reset_positions()
    return model.to(device).eval(), about


def read_weights(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; a model directory needs one")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise broken_weights(path, error) from None


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
        raise ValueError(f'{path} is not of a relakit model: it has no "format": "{FORMAT}"')
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
    about = ModelAbout(
        source_language=languages.get("source"),
        target_language=languages.get("target"),
        training=training,
        longest_sentence=_optional(content, "longest_sentence", int, path),
        tokenizer_sha256=_optional(content, "tokenizer_sha256", str, path),
    )
    return config, about


def _optional(content: dict[str, Any], key: str, kind: type[Kind], path: Path) -> Kind | None:
    value = content.get(key)
    if value is not None and type(value) is not kind:
        raise ValueError(f"{path}: {key} must be of type {kind.__name__}, got {value!r}")
    return value


def _check_tokenizer(folder: Path, about: ModelAbout) -> None:
    """Raise ValueError for a tokenizer of another model: it would give other words."""
    found = tokenizers_digest(folder)
    path = " or ".join(map(str, tokenizer_files(folder)))
    if about.tokenizer_sha256 not in (None, found):
        raise ValueError(
            f"{path} is not the tokenizer that this model was trained with: its SHA-256 is "
            f"{found[:12]}..., {CONFIG_FILE} says {str(about.tokenizer_sha256)[:12]}...; put back "
            "the file that was there"
        )

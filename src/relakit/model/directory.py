"""A model on disk: ``config.json``, ``model.safetensors`` and ``tokenizer.json`` in one folder.

Nothing else is needed to use it, and nothing in it is executed. `relakit.data` reads and writes the
tokenizer's file; here it is only copied.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from torch import Tensor

from relakit.model.config import ModelConfig
from relakit.model.tensor_file import tensor_bytes, write_tensors
from relakit.model.transformer import Transformer
from relakit.nn.arguments import check_usable
from relakit.output_paths import MODEL, check_output_folder
from relakit.writing import whole_folder, write_whole

CONFIG_FILE: Final = MODEL.marker
WEIGHTS_FILE: Final = "model.safetensors"
TOKENIZER_FILE: Final = "tokenizer.json"
FORMAT: Final = "relakit-model"
VERSION: Final = 1


@dataclass(frozen=True)
class ModelAbout:
    """What a model directory says besides the model's shape."""

    source_language: str | None = None
    target_language: str | None = None
    training: dict[str, Any] = field(default_factory=dict)
    """How the model was trained; for people to read."""


def check_model_folder(folder: Path, *, replace: bool) -> None:
    """Refuse to write a model over anything but, with ``replace``, a model directory."""
    is_model = CONFIG_FILE in os.listdir(folder) if folder.is_dir() else False
    parts = (CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE) if is_model else ()
    check_output_folder(folder, MODEL, parts=parts, replace=replace)


def save_model(
    folder: str | os.PathLike[str],
    model: Transformer,
    tokenizer_file: str | os.PathLike[str],
    about: ModelAbout | None = None,
    *,
    weights: dict[str, Tensor] | None = None,
) -> Path:
    """Write a model directory, whole or not at all; an older one is replaced.

    ``weights`` are saved instead of the model's own, if given: an average, for example.
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
    }
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    state = model.state_dict() if weights is None else weights
    tokenizer = Path(tokenizer_file).read_bytes()
    with whole_folder(folder, size=tensor_bytes(state) + len(tokenizer)) as unfinished:
        write_whole(unfinished / CONFIG_FILE, text.encode())
        write_tensors(unfinished / WEIGHTS_FILE, state)
        write_whole(unfinished / TOKENIZER_FILE, tokenizer)
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
    config, about = _read_config(folder / CONFIG_FILE)
    if not (folder / TOKENIZER_FILE).is_file():
        raise FileNotFoundError(f"{folder} has no {TOKENIZER_FILE}; a model directory needs one")
    weights = read_weights(folder / WEIGHTS_FILE)
    with torch.device("meta"):
        model = Transformer(config)
    _check_weights(folder / WEIGHTS_FILE, model, weights)
    # Not initialised: that would draw random numbers, which the user may have set a seed for.
    model.to_empty(device="cpu")
    model.load_state_dict(weights)
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
        size = path.stat().st_size
        raise ValueError(
            f"{path} ({size:,} bytes) is truncated or no safetensors file: {error}"
        ) from None


def _read_config(path: Path) -> tuple[ModelConfig, ModelAbout]:
    if not path.is_file():
        raise FileNotFoundError(
            f"{path.parent} is no model directory: it has no {CONFIG_FILE}. `relakit train` writes "
            "its models to OUT/model"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no JSON file: {error}") from None
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
        first = error.errors()[0]
        where = ".".join(["model", *(str(part) for part in first["loc"])])
        raise ValueError(f"{path}: {where}: {first['msg']}") from None
    languages, training = content.get("languages") or {}, content.get("training") or {}
    for name, value in (("languages", languages), ("training", training)):
        if not isinstance(value, dict):
            raise ValueError(f"{path}: {name} must be an object, got {value!r}")
    about = ModelAbout(
        source_language=languages.get("source"),
        target_language=languages.get("target"),
        training=training,
    )
    return config, about


def _check_weights(path: Path, model: Transformer, weights: dict[str, Tensor]) -> None:
    expected = {name: tensor.shape for name, tensor in model.state_dict().items()}
    missing = sorted(expected.keys() - weights.keys())
    unknown = sorted(weights.keys() - expected.keys())
    if missing or unknown:
        parts = []
        if missing:
            parts.append(f"{len(missing)} tensors are missing, such as {missing[0]}")
        if unknown:
            parts.append(f"{len(unknown)} are unknown, such as {unknown[0]}")
        raise ValueError(f"{path} does not fit {CONFIG_FILE}: {', '.join(parts)}")
    for name, shape in expected.items():
        if weights[name].shape != shape:
            raise ValueError(
                f"{path} does not fit {CONFIG_FILE}: {name} has shape {tuple(weights[name].shape)} "
                f"instead of {tuple(shape)}"
            )

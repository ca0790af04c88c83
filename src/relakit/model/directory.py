"""A model on disk: ``config.json``, ``model.safetensors`` and ``tokenizer.json`` in one folder.

Nothing else is needed to use it, and nothing in it is executed. `relakit.data` reads and writes the
tokenizer's file; here it is only copied. ``languages.json``, which tells the model's languages from
others, is there if the text that the model was trained on was available.
"""

import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from relakit.amounts import number_with_noun
from relakit.data.languages import LANGUAGES_FILE, LanguagePair
from relakit.data.tokenizer_pair import (
    TOKENIZER_FILE,
    Tokenizers,
    save_tokenizers,
    tokenizers_digest,
)
from relakit.files.writing import whole_folder, write_whole
from relakit.model.description import (
    CONFIG_FILE,
    FORMAT,
    VERSION,
    WEIGHTS_FILE,
    ModelAbout,
    ModelDescription,
    check_model_folder,
    read_description,
)
from relakit.model.tensor_file import tensor_bytes, write_tensors
from relakit.model.transformer import Transformer
from relakit.model.weight_shapes import Shapes, broken_weights
from relakit.nn.arguments import check_usable


def save_model(
    folder: str | os.PathLike[str],
    model: Transformer,
    tokenizer: str | os.PathLike[str] | Tokenizers,
    about: ModelAbout | None = None,
    *,
    weights: dict[str, Tensor] | None = None,
    languages: LanguagePair | None = None,
) -> Path:
    """Write a model directory, whole or not at all; an older one is replaced.

    Args:
        folder: the directory.
        model: what is saved.
        tokenizer: its tokenizer, or one for each language; or a file, which is copied.
        about: what else the directory says.
        weights: saved instead of the model's own, if given: an average, for example.
        languages: the languages that it translates between, learned from its text.
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
    copied = Path(tokenizer).read_bytes() if isinstance(tokenizer, str | os.PathLike) else b""
    with whole_folder(folder, size=tensor_bytes(state) + len(copied)) as unfinished:
        write_tensors(unfinished / WEIGHTS_FILE, state)
        if isinstance(tokenizer, str | os.PathLike):
            write_whole(unfinished / TOKENIZER_FILE, copied)
        else:
            save_tokenizers(unfinished, tokenizer)
        if languages is not None:
            languages.save(unfinished / LANGUAGES_FILE)
        content["tokenizer_sha256"] = tokenizers_digest(unfinished)
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        write_whole(unfinished / CONFIG_FILE, text.encode())
    return folder


def load_model(
    folder: str | os.PathLike[str], *, device: torch.device | str = "cpu"
) -> tuple[Transformer, ModelAbout]:
    """Read a model directory; raise OSError or ValueError, naming the file, if it is broken."""
    check_usable(device)
    return build_model(read_description(folder), device=device)


def build_model(
    described: ModelDescription, *, device: torch.device | str = "cpu"
) -> tuple[Transformer, ModelAbout]:
    """Like `load_model`, for a directory whose description has been read."""
    model = _fitting_model(described)
    # Not initialised: that would draw random numbers, which the user may have set a seed for.
    model.to_empty(device="cpu")
    model.load_state_dict(read_weights(described.weights))
    model.embedding.reset_positions()
    return model.to(device).eval(), described.about


def read_weights(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError:
        raise broken_weights(path) from None


def _fitting_model(described: ModelDescription) -> Transformer:
    """A model without values, on the device "meta", whose weights the file has.

    Raises:
        ValueError: the file has other weights; names the tensor and both shapes.
    """
    with torch.device("meta"):  # there, tensors take no memory
        model = Transformer(described.config)
    shapes, path = described.shapes, described.weights
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    _check_names(expected, shapes, path)
    for name, shape in expected.items():
        if shapes[name] != shape:
            raise ValueError(
                f"{path} does not fit {CONFIG_FILE}: {name} has shape {shapes[name]} instead of "
                f"{shape}; copy both from one model"
            )
    return model


def _check_names(expected: Shapes, found: Shapes, path: Path) -> None:
    missing = sorted(expected.keys() - found.keys())
    unknown = sorted(found.keys() - expected.keys())
    parts = []
    if missing:
        parts.append(f"lacks {number_with_noun(len(missing), 'tensor')}, such as {missing[0]}")
    if unknown:
        count = number_with_noun(len(unknown), "unknown tensor")
        parts.append(f"has {count}, such as {unknown[0]}")
    if parts:
        raise ValueError(
            f"{path} does not fit {CONFIG_FILE}: it {' and '.join(parts)}; copy both from one model"
        )

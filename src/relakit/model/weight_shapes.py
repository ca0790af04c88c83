"""Compares a model's settings with its file of weights, before anything is built or read.

A file of weights begins with the name and shape of every tensor. Whatever size ``config.json``
asks for, a model is built only if the file has the tensors for it.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from safetensors import SafetensorError, safe_open

from relakit.model.config import ModelConfig

Shapes: TypeAlias = Mapping[str, tuple[int, ...]]

_LAYER: Final = re.compile(r"(encoder|decoder)\.layers\.([0-9]{1,9})\.")
_OF_MATRICES: Final = (
    ("vocabulary", "embedding.weight", 0),
    ("dim", "embedding.weight", 1),
    ("feed_forward", "encoder.layers.0.feed_forward.inner.weight", 0),
)
"""Each setting, with the tensor and the dimension that show it."""


def read_shapes(path: Path) -> Shapes:
    """The shape of every tensor of a safetensors file; the tensors themselves are not read."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing")
    try:
        with safe_open(path, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            for name, tensor in slices.items():
                if not tensor.get_dtype().lstrip("B").startswith("F"):
                    raise ValueError(
                        f"{path}: {name} has the type {tensor.get_dtype()}, which is no floating "
                        "point: they are not the weights of a model"
                    )
            return {name: tuple(tensor.get_shape()) for name, tensor in slices.items()}
    except SafetensorError:
        raise broken_weights(path) from None


def broken_weights(path: Path) -> ValueError:
    """The error for a file that is not what its suffix says."""
    size = path.stat().st_size
    return ValueError(
        f"{path} ({size:,} bytes) is truncated or no safetensors file; copy or make it again"
    )


def check_sizes_of_weights(
    config: ModelConfig, config_path: Path, shapes: Shapes, path: Path
) -> None:
    """Raise ValueError, with both values, if the file has the weights of a model of another size.

    If it does not raise, the number of layers matches the file, so the model can be built.
    """
    for key, stored in _stored_sizes(shapes):
        wanted = getattr(config, key)
        if wanted != stored:
            raise ValueError(
                f"{config_path} says model.{key} = {wanted:,}, but {path.name} beside it has the "
                f"weights of a model with {stored:,}: they do not belong together; copy both from "
                "one model"
            )


def _stored_sizes(shapes: Shapes) -> Iterator[tuple[str, int]]:
    """The settings that can be read off the shapes, as far as the tensors for them exist."""
    layers = {"encoder": 0, "decoder": 0}
    for match in filter(None, map(_LAYER.match, shapes)):
        layers[match[1]] = max(layers[match[1]], int(match[2]) + 1)
    for side, count in layers.items():
        yield f"{side}_layers", count
    for key, name, dimension in _OF_MATRICES:
        if len(shapes.get(name, ())) == 2:
            yield key, shapes[name][dimension]

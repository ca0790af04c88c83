"""An alignment layer on disk: its weights and what it was trained on. No torch here.

``aligner.safetensors`` and ``aligner.json`` are in the directory of the model whose states the
layer reads. A layer that replaces another goes into ``aligner-2.safetensors``, and the next one
into ``aligner.safetensors`` again: the new weights are there before ``aligner.json`` names them.
"""

from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from relakit.align.choice import AlignmentChoice, read_choice, required_choice
from relakit.align.settings import LAYER_FILE, LAYER_WEIGHTS
from relakit.data.json_file import read_json
from relakit.data.setting_errors import explain_setting
from relakit.files.reading import file_digest
from relakit.model.config import ModelConfig
from relakit.model.description import WEIGHTS_FILE

AGAIN: Final = "train it again with relakit train-aligner, or delete it"

Teacher: TypeAlias = Literal["two models", "one model", "links"]
"""What a layer learnt from. ``two models``: links on which the attention of both directions agrees.
``one model``: words that attend most to each other in this model. ``links``: a file of links. After
the first round, the attention is that of the layers of the round before."""


class LayerScores(BaseModel):
    """How well a layer did on pairs that it was not trained on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pairs: int
    loss: float
    """Logistic loss over token pairs, divided by the number of linked ones"""
    aer: float | None = None
    """Alignment error rate of this direction alone; None if there is no sure link"""
    precision: float | None = None
    recall: float | None = None
    against: Literal["gold", "teacher"]
    """Whether it is scored against gold links, or against the links that it should learn"""


class LayerTrained(BaseModel):
    """What a layer was trained on, for people to read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: Teacher
    files: tuple[str, ...] = ()
    other_model: str | None = None
    """Directory of the model of the other direction"""
    heads: str | None = None
    """The heads that the links were read from, in words"""
    pairs: int
    epochs: float
    seed: int
    rounds: int = 1
    """How often layers were trained; from the second time on, they learnt from those before"""
    scores: LayerScores
    relakit: str = ""
    """The version that trained it"""


class LayerAbout(BaseModel):
    """The content of ``aligner.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    dim: int = Field(ge=1)
    """Features of the model's states"""
    model_sha256: str
    """Digest of the weights of the model whose states the layer reads"""
    layer_sha256: str
    """Digest of the layer's weights"""
    weights: Literal["aligner.safetensors", "aligner-2.safetensors"] = LAYER_WEIGHTS
    """The file that holds the layer's weights"""
    trained: LayerTrained


def has_layer(folder: Path) -> bool:
    """Whether a model directory has an alignment layer."""
    return (folder / LAYER_FILE).is_file()


def heads_to_read(folder: Path, config: ModelConfig) -> AlignmentChoice | None:
    """The heads that give a model's links; None if its alignment layer does, or none are chosen."""
    return None if has_layer(folder) else read_choice(folder, config)


def heads_or_layer(
    folder: Path, config: ModelConfig, *, use_layer: bool = True
) -> tuple[AlignmentChoice | None, bool]:
    """What gives a model's links: the heads that were chosen, if any, and whether a layer does.

    Raises:
        ValueError: there is neither; the message says what to do.
    """
    with_layer = use_layer and has_layer(folder)
    read = read_choice if with_layer else required_choice
    return read(folder, config), with_layer


def layer_weights(folder: Path) -> Path | None:
    """The weights file of a folder's layer; None if no ``aligner.json`` names it."""
    try:
        return folder / LayerAbout.model_validate(read_json(folder / LAYER_FILE)).weights
    except (OSError, ValueError):
        return None


def read_layer_about(folder: Path) -> LayerAbout:
    """What is known about the layer in a model directory.

    Raises:
        OSError: a file is missing.
        ValueError: the file is damaged, or the layer belongs to another model.
    """
    path = folder / LAYER_FILE
    try:
        about = LayerAbout.model_validate(read_json(path))
    except ValidationError as error:
        raise ValueError(f"{path}: {explain_setting(error.errors()[0])}; {AGAIN}") from None
    weights = folder / about.weights
    for file, expected, problem in (
        (folder / WEIGHTS_FILE, about.model_sha256, "is of another model"),
        (weights, about.layer_sha256, f"does not belong to {weights.name}"),
    ):
        if not file.is_file():
            raise FileNotFoundError(f"{file} is missing, {path} needs it; {AGAIN}")
        found = file_digest(file)
        if found != expected:
            raise ValueError(
                f"{path} {problem}: the SHA-256 of {file.name} is {found[:12]}..., it says "
                f"{expected[:12]}...; {AGAIN}"
            )
    return about

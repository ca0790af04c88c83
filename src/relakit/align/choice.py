"""Where a model's links are read: layer, heads and step. Stored in the model's directory."""

from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from relakit.align.settings import CHOICE_FILE
from relakit.analysis.links import EndWeight, Reading
from relakit.data.json_file import read_json
from relakit.data.setting_errors import explain_setting
from relakit.files.writing import write_whole
from relakit.model.config import ModelConfig

Criterion: TypeAlias = Literal["aer", "agreement", "same words", "given"]


class ChosenOn(BaseModel):
    """What a choice is based on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: Criterion
    """``aer``: against gold links. ``agreement``: with a model of the other direction. ``same
    words``: by words that are the same on both sides. ``given``: by the user."""
    files: tuple[str, ...] = ()
    pairs: int = 0
    value: float | None = None
    """The value of the criterion, see `relakit.align.select`."""


class AlignmentChoice(BaseModel):
    """Which cross-attention is read as links.

    Layers and heads are counted from 0 here and in the file, from 1 in words and on the command
    line, as in reports.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    layer: int = Field(ge=0)
    heads: tuple[int, ...] = Field(min_length=1)
    """Their weights are averaged"""
    reading: Reading
    end: EndWeight = "ignored"
    """The effect of weight on the source's end-of-sentence token"""
    chosen: ChosenOn

    @model_validator(mode="after")
    def _distinct(self) -> "AlignmentChoice":
        if min(self.heads) < 0 or len(set(self.heads)) < len(self.heads):
            raise ValueError(f"heads must be different and at least 0, got {list(self.heads)}")
        return self

    def check(self, config: ModelConfig, where: str) -> None:
        """Raise ValueError if the model has no such layer or head."""
        if self.layer >= config.decoder_layers:
            raise ValueError(
                f"{where}: there is no layer {self.layer + 1}; the decoder has "
                f"{config.decoder_layers} of them, counted from 1"
            )
        if max(self.heads) >= config.heads:
            raise ValueError(
                f"{where}: there is no head {max(self.heads) + 1}; each layer has {config.heads} "
                "of them, counted from 1"
            )

    def in_words(self) -> str:
        heads = ", ".join(str(head + 1) for head in self.heads)
        noun = "head" if len(self.heads) == 1 else "heads"
        return f"layer {self.layer + 1}, {noun} {heads}, {self.reading}, end {self.end}"


def read_choice(folder: Path, config: ModelConfig) -> AlignmentChoice | None:
    """The choice stored in a model directory; None if there is none.

    Raises:
        ValueError: the file is damaged, or belongs to another model.
    """
    path = folder / CHOICE_FILE
    if not path.exists():
        return None
    try:
        choice = AlignmentChoice.model_validate(read_json(path))
    except ValidationError as error:
        problem = explain_setting(error.errors()[0])
        raise ValueError(f"{path}: {problem}; choose again with relakit align --select") from None
    choice.check(config, str(path))
    return choice


def required_choice(folder: Path, config: ModelConfig) -> AlignmentChoice:
    """Like `read_choice`, but raises ValueError, saying what to do, if nothing was chosen."""
    choice = read_choice(folder, config)
    if choice is None:
        raise ValueError(
            f"{folder} does not say which heads align; choose them with relakit align {folder} "
            "--select --source FILE --target FILE"
        )
    return choice


def write_choice(folder: Path, choice: AlignmentChoice) -> Path:
    """Store a choice in the model's directory."""
    path = folder / CHOICE_FILE
    write_whole(path, (choice.model_dump_json(indent=1) + "\n").encode())
    return path

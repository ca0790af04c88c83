"""What a checkpoint holds: all that a run needs to resume as if nothing had happened.

A checkpoint is a folder ``update-0001200`` (``interrupted-0001234`` if a signal asked for it)::

    weights.safetensors   the model's weights, by their names in its state dict
    adam.safetensors      Adam's two moments of each weight (.mean, .square) and its .step
    state.json            how far the run has got: `RunState`

Batches and random numbers need not be saved: they follow from the recipe's seed and the number of
the update. A checkpoint gets its name only once it is complete, so a run killed at any moment still
has the previous one.
"""

import json
import re
import reprlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from relakit.data.json_file import read_json
from relakit.files.output_paths import CHECKPOINT
from relakit.files.writing import remove_folder, whole_folder, write_whole
from relakit.model.weight_shapes import Shapes, read_shapes

if TYPE_CHECKING:  # a wrong --out is reported before torch is loaded
    import torch
    from torch import Tensor, nn

_NAME: Final = re.compile(r"(update|interrupted)-(\d{7,})")
CHECKPOINT_NAMES: Final = "update-0001200 or interrupted-0001234"
"""What checkpoints are called, as users are told."""
WEIGHTS: Final = "weights.safetensors"
MOMENTS: Final = "adam.safetensors"
STATE: Final = CHECKPOINT.marker
_TYPES_IN_WORDS: Final[dict[object, str]] = {
    int: "a whole number",
    float: "a number",
    float | None: "a number or null",
    list[float]: "a list of numbers",
    str: "text",
    str | None: "text or null",
}
"""The types of `RunState`'s fields, as users are told."""


@dataclass
class RunState:
    """How far a run has got: the content of ``state.json``."""

    update: int = 0
    epoch: int = 0
    """The epoch of the last update, counted from 0"""
    updates_before_epoch: int = 0
    epochs_done: int = 0
    target_tokens: int = 0
    seconds: float = 0.0
    best_loss: float | None = None
    validations_since_best: int = 0
    recent: list[float] = field(default_factory=list)
    """Training losses since the last validation"""
    has_not_learnt: str | None = None
    """Why the run was given up, if it was"""
    corpus: str = ""
    """The fingerprint of the corpus"""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk."""

    folder: Path
    update: int

    def weights(self) -> "dict[str, Tensor]":
        from relakit.model.directory import read_weights

        return read_weights(self.folder / WEIGHTS)

    def state(self) -> RunState:
        """How far the run had got; ValueError if ``state.json`` is about a different update."""
        path = self.folder / STATE
        state = read_state(path)
        if state.update != self.update:
            raise ValueError(
                f"{path} is the state after update {state.update:,}, and the folder's name says "
                f"{self.update:,}"
            )
        return state


def read_state(path: Path) -> RunState:
    """The content of a ``state.json``; ValueError if a field is missing, unknown or wrong."""
    content = read_json(path)
    known = {each.name: each.type for each in fields(RunState)}
    if not isinstance(content, dict) or not known.keys() >= content.keys():
        raise ValueError(f"{path} does not hold the state of a training run")
    for key, kind in known.items():
        if key not in content:
            raise ValueError(f"{path}: {key} is missing")
        if not _is_of_type(content[key], kind):
            got = reprlib.repr(content[key])  # a list may be long
            raise ValueError(f"{path}: {key} must be {_TYPES_IN_WORDS[kind]}, got {got}")
    return RunState(**content)


def _is_of_type(value: object, kind: object) -> bool:
    """Whether a JSON value fits the type of a field of `RunState`."""
    if kind == list[float]:
        return isinstance(value, list) and all(_is_of_type(each, float) for each in value)
    types = get_args(kind) or (kind,)
    # Not isinstance: for Python, true and false are whole numbers.
    return type(value) in types or (type(value) is int and float in types)


def find_checkpoints(folder: Path, *, interrupted: bool = False) -> list[Checkpoint]:
    """The checkpoints in a folder, oldest first.

    ``interrupted`` adds those that were written out of turn because a signal ended the run.
    """
    found = []
    for entry in folder.iterdir() if folder.is_dir() else ():
        match = _NAME.fullmatch(entry.name)
        if match and entry.is_dir() and (interrupted or match[1] == "update"):
            found.append(Checkpoint(entry, int(match[2])))
    return sorted(found, key=lambda checkpoint: checkpoint.update)


def open_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in a folder, whatever the folder is called.

    Raises:
        ValueError: the folder is not a checkpoint.
    """
    if not CHECKPOINT.is_at(folder) or not (folder / WEIGHTS).is_file():
        raise ValueError(f"{folder} is no checkpoint: it has no {STATE} and {WEIGHTS}")
    return Checkpoint(folder, read_state(folder / STATE).update)


def save_checkpoint(
    folder: Path,
    model: "nn.Module",
    optimizer: "torch.optim.Optimizer",
    state: RunState,
    *,
    keep: int,
    is_interrupted: bool = False,
) -> Checkpoint:
    """Write a checkpoint, then remove all but the last ``keep``."""
    from relakit.model.tensor_file import tensor_bytes, write_tensors

    final = folder / f"{'interrupted' if is_interrupted else 'update'}-{state.update:07d}"
    weights, moments = model.state_dict(), _moments(model, optimizer)
    with whole_folder(final, size=tensor_bytes(weights) + tensor_bytes(moments)) as unfinished:
        write_tensors(unfinished / WEIGHTS, weights)
        write_tensors(unfinished / MOMENTS, moments)
        write_whole(unfinished / STATE, (json.dumps(asdict(state), indent=2) + "\n").encode())
    for old in find_checkpoints(folder)[:-keep]:
        remove_folder(old.folder)
    return Checkpoint(final, state.update)


def remove_interrupted(folder: Path) -> None:
    """Remove checkpoints that were written out of turn, now that there is a later one."""
    regular = find_checkpoints(folder)
    for checkpoint in find_checkpoints(folder, interrupted=True):
        if checkpoint not in regular:
            remove_folder(checkpoint.folder)


def check_checkpoint(checkpoint: Checkpoint) -> None:
    """Raise ValueError if a checkpoint is damaged, as far as can be told without torch."""
    try:
        weights = read_shapes(checkpoint.folder / WEIGHTS)
        path = checkpoint.folder / MOMENTS
        moments = read_shapes(path)
        # Weights without a step are buffers.
        trained = {name: shape for name, shape in weights.items() if f"{name}.step" in moments}
        _check_shapes_of_moments(trained, moments, path)
        checkpoint.state()
    except (OSError, ValueError) as error:
        raise damaged(checkpoint, error) from None


def restore(
    checkpoint: Checkpoint, model: "nn.Module", optimizer: "torch.optim.Optimizer"
) -> RunState:
    """Restore the state of model and optimizer, and return how far the run had got.

    Raises:
        ValueError: the checkpoint is damaged, or belongs to another model.
    """
    from relakit.model.directory import read_weights

    try:
        model.load_state_dict(checkpoint.weights())
        path = checkpoint.folder / MOMENTS
        moments = read_weights(path)
        # Fused Adam checks neither shapes nor types, and would write past a moment too short.
        _check_shapes_of_moments(
            {name: tuple(parameter.shape) for name, parameter in model.named_parameters()},
            {name: tuple(moment.shape) for name, moment in moments.items()},
            path,
        )
        _check_types_of_moments(model, moments, path)
        for name, parameter in model.named_parameters():
            optimizer.state[parameter] = {
                # Adam's implementations expect the step on their own device.
                "step": moments[f"{name}.step"].to(parameter.device),
                "exp_avg": moments[f"{name}.mean"].to(parameter.device),
                "exp_avg_sq": moments[f"{name}.square"].to(parameter.device),
            }
        return checkpoint.state()
    except (OSError, ValueError, RuntimeError) as error:
        raise damaged(checkpoint, error) from None


def damaged(checkpoint: Checkpoint, error: Exception) -> ValueError:
    """The error for a checkpoint that cannot be read."""
    is_foreign = isinstance(error, RuntimeError)  # its message is torch's own
    what = "its weights have other names or shapes" if is_foreign else str(error)
    return ValueError(
        f"{checkpoint.folder} is damaged, or of another model ({what}); "
        "remove that folder, and --resume continues from the checkpoint before it"
    )


def _check_shapes_of_moments(weights: Shapes, moments: Shapes, path: Path) -> None:
    """Raise ValueError unless each weight has a step, and two moments of its own shape."""
    for weight, shape in weights.items():
        for part, expected in (("step", ()), ("mean", shape), ("square", shape)):
            name = f"{weight}.{part}"
            if name not in moments:
                raise ValueError(f"{path} has no {name}")
            if moments[name] != expected:
                raise ValueError(f"{path}: {name} has shape {moments[name]} instead of {expected}")


def _check_types_of_moments(
    model: "nn.Module", moments: "Mapping[str, Tensor]", path: Path
) -> None:
    """Raise ValueError unless the moments are as precise as their weights."""
    for weight, parameter in model.named_parameters():
        for name in (f"{weight}.mean", f"{weight}.square"):
            found, expected = moments[name].dtype, parameter.dtype
            if found != expected:
                message = f"{path}: {name} has the type {found} instead of {expected}"
                raise ValueError(message.replace("torch.", ""))


def _moments(model: "nn.Module", optimizer: "torch.optim.Optimizer") -> "dict[str, Tensor]":
    moments = {}
    for name, parameter in model.named_parameters():
        state = optimizer.state[parameter]
        moments[f"{name}.step"] = state["step"]
        moments[f"{name}.mean"] = state["exp_avg"]
        moments[f"{name}.square"] = state["exp_avg_sq"]
    return moments

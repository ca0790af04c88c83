"""What a checkpoint holds: all that a run needs to go on as if nothing had happened.

A checkpoint is a folder ``update-0001200`` (``interrupted-0001234`` if a signal asked for it)::

    weights.safetensors   the model's weights, by their names in its state dict
    adam.safetensors      Adam's two moments of each weight (.mean, .square) and its .step
    state.json            how far the run is: `RunState`

Batches and random numbers need not be saved: they follow from the recipe's seed and the number of
the update. A checkpoint gets its name when it is complete, so a kill at any moment leaves the one
before.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from relakit.data.json_file import read_json
from relakit.files.output_paths import CHECKPOINT
from relakit.files.writing import remove_folder, whole_folder, write_whole
from relakit.model.weight_shapes import read_shapes

if TYPE_CHECKING:  # a wrong --out is said before torch is loaded
    import torch
    from torch import Tensor, nn

_NAME: Final = re.compile(r"(update|interrupted)-(\d{7,})")
CHECKPOINT_NAMES: Final = "update-0001200 or interrupted-0001234"
"""What checkpoints are called, for people."""
WEIGHTS: Final = "weights.safetensors"
MOMENTS: Final = "adam.safetensors"
STATE: Final = CHECKPOINT.marker


@dataclass
class RunState:
    """How far a run is: the content of ``state.json``."""

    update: int = 0
    epoch: int = 0
    """Of the last update, counted from 0"""
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

    def state(self) -> dict[str, Any]:
        """The fields of `RunState`."""
        path = self.folder / STATE
        state = read_json(path)
        known = RunState.__dataclass_fields__
        if not isinstance(state, dict) or not known.keys() >= state.keys():
            raise ValueError(f"{path} does not hold the state of a training run")
        for key, value in state.items():
            if known[key].type is int and type(value) is not int:
                raise ValueError(f"{path}: {key} must be a whole number, got {value!r}")
        return state


def find_checkpoints(folder: Path, *, interrupted: bool = False) -> list[Checkpoint]:
    """The checkpoints in a folder, oldest first.

    ``interrupted`` adds those that were written out of turn, because a signal ended the run.
    """
    found = []
    for entry in folder.iterdir() if folder.is_dir() else ():
        match = _NAME.fullmatch(entry.name)
        if match and entry.is_dir() and (interrupted or match[1] == "update"):
            found.append(Checkpoint(entry, int(match[2])))
    return sorted(found, key=lambda checkpoint: checkpoint.update)


def open_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in a folder, whatever that is called.

    Raises:
        ValueError: it is none.
    """
    if not CHECKPOINT.is_at(folder) or not (folder / WEIGHTS).is_file():
        raise ValueError(f"{folder} is no checkpoint: it has no {STATE} and {WEIGHTS}")
    checkpoint = Checkpoint(folder, 0)
    update = checkpoint.state().get("update")
    if not isinstance(update, int):
        raise ValueError(f"{folder / STATE} does not say of which update it is")
    return replace(checkpoint, update=update)


def save_checkpoint(
    folder: Path,
    update: int,
    model: "nn.Module",
    optimizer: "torch.optim.Optimizer",
    state: Mapping[str, Any],
    *,
    keep: int,
    is_interrupted: bool = False,
) -> Checkpoint:
    """Write a checkpoint, then remove all but the last ``keep``."""
    from relakit.model.tensor_file import tensor_bytes, write_tensors

    final = folder / f"{'interrupted' if is_interrupted else 'update'}-{update:07d}"
    weights, moments = model.state_dict(), _moments(model, optimizer)
    with whole_folder(final, size=tensor_bytes(weights) + tensor_bytes(moments)) as unfinished:
        write_tensors(unfinished / WEIGHTS, weights)
        write_tensors(unfinished / MOMENTS, moments)
        write_whole(unfinished / STATE, (json.dumps(state, indent=2) + "\n").encode())
    for old in find_checkpoints(folder)[:-keep]:
        remove_folder(old.folder)
    return Checkpoint(final, update)


def remove_interrupted(folder: Path) -> None:
    """Remove checkpoints that were written out of turn: there is a later one."""
    regular = find_checkpoints(folder)
    for checkpoint in find_checkpoints(folder, interrupted=True):
        if checkpoint not in regular:
            remove_folder(checkpoint.folder)


def check_checkpoint(checkpoint: Checkpoint) -> None:
    """Raise ValueError for a checkpoint that is damaged, as far as can be told without torch."""
    try:
        for name in (WEIGHTS, MOMENTS):
            read_shapes(checkpoint.folder / name)
        checkpoint.state()
    except (OSError, ValueError) as error:
        raise damaged(checkpoint, error) from None


def restore(
    checkpoint: Checkpoint, model: "nn.Module", optimizer: "torch.optim.Optimizer"
) -> dict[str, Any]:
    """Set model and optimizer to what they were, and return the fields of `RunState`.

    Raises:
        ValueError: the checkpoint is damaged, or of another model.
    """
    from relakit.model.directory import read_weights

    try:
        model.load_state_dict(checkpoint.weights())
        moments = read_weights(checkpoint.folder / MOMENTS)
        for name, parameter in model.named_parameters():
            optimizer.state[parameter] = {
                # Adam's implementations expect the step on their own device.
                "step": moments[f"{name}.step"].to(parameter.device),
                "exp_avg": moments[f"{name}.mean"].to(parameter.device),
                "exp_avg_sq": moments[f"{name}.square"].to(parameter.device),
            }
        return checkpoint.state()
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise damaged(checkpoint, error) from None


def damaged(checkpoint: Checkpoint, error: Exception) -> ValueError:
    """The error for a checkpoint that cannot be read."""
    is_foreign = isinstance(error, (KeyError, RuntimeError, TypeError))
    what = "its weights or moments have other names or shapes" if is_foreign else str(error)
    return ValueError(
        f"{checkpoint.folder} is damaged, or of another model ({what}); "
        "remove that folder, and --resume goes on from the checkpoint before it"
    )


def _moments(model: "nn.Module", optimizer: "torch.optim.Optimizer") -> "dict[str, Tensor]":
    moments = {}
    for name, parameter in model.named_parameters():
        state = optimizer.state[parameter]
        moments[f"{name}.step"] = state["step"]
        moments[f"{name}.mean"] = state["exp_avg"]
        moments[f"{name}.square"] = state["exp_avg_sq"]
    return moments

"""The alignment layer: one rectified cross-attention over the states of a frozen translator.

A translator decides what to look at before it knows the word that it will write. Here the query of
a target token is made once the token is known: from the state that predicted it, the state that has
read it, and its embedding. The score ``q·k / sqrt(dim) + bias`` is the log-odds of a link, and its
weight is ``ReLU(score - LEAST_SCORE)``: exactly zero where there can be no link, so a target token
without a counterpart has a null row.
"""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from relakit.align.alignment import link_weights
from relakit.align.layer_files import (
    AGAIN,
    LayerAbout,
    LayerTrained,
    layer_weights,
    read_layer_about,
)
from relakit.align.settings import LAYER_FILE, LAYER_WEIGHTS, NEXT_LAYER_WEIGHTS
from relakit.align.states import KEY_PARTS, QUERY_PARTS, StateBatch, state_batches
from relakit.analysis.pair_batches import WINDOW, TokenPair
from relakit.analysis.settings import BATCH_TOKENS
from relakit.files.reading import file_digest
from relakit.files.writing import write_whole
from relakit.model import Transformer
from relakit.model.description import WEIGHTS_FILE
from relakit.model.directory import read_weights
from relakit.model.tensor_file import write_tensors

_FIRST_BIAS: Final = -2.0
"""Most pairs of words are not linked, so scores start below zero."""


class AlignmentLayer(nn.Module):
    """Turns the states of a model with ``dim`` features into scores and weights of links."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(QUERY_PARTS * dim, dim)
        self.key = nn.Linear(KEY_PARTS * dim, dim)
        self.bias = nn.Parameter(torch.tensor(_FIRST_BIAS))

    @property
    def dim(self) -> int:
        return self.key.out_features

    def forward(self, states: StateBatch) -> Tensor:
        """Scores ``[pairs, target positions, source positions]``: log-odds of links."""
        query, key = self.query(states.target), self.key(states.source)
        scores: Tensor = query @ key.transpose(1, 2) / math.sqrt(self.dim)
        return scores + self.bias

    def raise_threshold(self, by: float) -> None:
        """Require this much more score for a link."""
        with torch.no_grad():
            self.bias.sub_(by)

    def weights(
        self,
        model: Transformer,
        pairs: Iterable[TokenPair],
        *,
        batch_tokens: int = BATCH_TOKENS,
        window: int = WINDOW,
    ) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        """The number of each pair, and its weights; not in order.

        The weights are ``[target tokens + 1, source tokens + 1]``, like those of `CrossAttention`;
        the last row and the last column, for the ends of the sentences, are zero.
        """
        for states in state_batches(model, pairs, batch_tokens=batch_tokens, window=window):
            yield from self.weights_of(states)

    def weights_of(self, states: StateBatch) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        """The same for pairs whose states are known."""
        with torch.no_grad():
            rectified = link_weights(self(states).cpu().numpy())
        for index, (sources, targets), matrix in zip(
            states.indices, states.sizes, rectified, strict=True
        ):
            found = np.zeros((targets + 1, sources + 1), dtype=np.float32)
            found[:targets, :sources] = matrix[:targets, :sources]
            yield index, found


def save_layer(folder: Path, layer: AlignmentLayer, trained: LayerTrained) -> Path:
    """Put a layer into the directory of its model; returns the path of ``aligner.json``.

    If this is interrupted, either the old layer is still intact or the new one is in place.
    """
    before, path = layer_weights(folder), folder / LAYER_FILE
    is_first_name_used = before is not None and before.name == LAYER_WEIGHTS
    weights = folder / (NEXT_LAYER_WEIGHTS if is_first_name_used else LAYER_WEIGHTS)
    model_sha256 = file_digest(folder / WEIGHTS_FILE)
    write_tensors(weights, layer.state_dict())
    about = LayerAbout.model_validate(
        {
            "dim": layer.dim,
            "model_sha256": model_sha256,
            "layer_sha256": file_digest(weights),
            "weights": weights.name,
            "trained": trained,
        }
    )
    write_whole(path, (about.model_dump_json(indent=1) + "\n").encode())
    if before is not None:
        before.unlink(missing_ok=True)
    return path


def load_layer(folder: Path, model: Transformer) -> tuple[AlignmentLayer, LayerAbout]:
    """Read the layer in the directory of a model, onto the model's device.

    Raises:
        OSError: a file is missing.
        ValueError: a file is damaged, or the layer belongs to another model.
    """
    about = read_layer_about(folder)
    if about.dim != model.config.dim:
        raise ValueError(
            f"{folder / LAYER_FILE}: dim must be {model.config.dim}, as the model has it, got "
            f"{about.dim}; {AGAIN}"
        )
    with torch.device("meta"):
        layer = AlignmentLayer(about.dim)
    found = read_weights(folder / about.weights)
    expected = {name: tuple(tensor.shape) for name, tensor in layer.state_dict().items()}
    if {name: tuple(tensor.shape) for name, tensor in found.items()} != expected:
        raise ValueError(
            f"{folder / about.weights} does not hold the weights of an alignment layer; {AGAIN}"
        )
    layer.load_state_dict(found, assign=True)
    return layer.to(model.embedding.weight.device).eval(), about

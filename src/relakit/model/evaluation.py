"""A model that only computes: without dropout, without gradients."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from relakit.model.transformer import Transformer


@contextmanager
def evaluation_mode(*models: nn.Module) -> Iterator[None]:
    """Turn dropout off in the block; afterwards each model is back in its previous mode."""
    in_training = [model for model in models if model.training]
    for model in models:
        model.eval()
    try:
        yield
    finally:
        for model in in_training:
            model.train()


@contextmanager
def inference(model: Transformer, *, positions: int) -> Iterator[None]:
    """Turn off dropout and gradients in a block for sentences of up to ``positions`` tokens."""
    grow_positions([model], positions)
    with evaluation_mode(model), torch.inference_mode():
        yield


def grow_positions(models: Iterable[Transformer], count: int) -> None:
    """Make the models' position tables long enough before inference mode begins.

    The models keep these tables, and nothing outside of inference mode may write to a tensor made
    in it, as torch does when processes exchange buffers.
    """
    for model in models:
        model.embedding.position_vectors(count)

"""A model that only computes: without dropout, without gradients."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from relakit.model.transformer import Transformer


@contextmanager
def evaluation_mode(*models: nn.Module) -> Iterator[None]:
    """Without dropout in the block; afterwards each model is in the mode it was in before."""
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
    """Without dropout and gradients in the block, which reads sentences of so many tokens."""
    grow_positions([model], positions)
    with evaluation_mode(model), torch.inference_mode():
        yield


def grow_positions(models: Iterable[Transformer], count: int) -> None:
    """Make the models' tables of positions long enough before inference mode begins.

    The models keep them, and into a tensor made in inference mode nothing outside of it may write,
    as torch does where processes exchange buffers.
    """
    for model in models:
        model.embedding.position_vectors(count)

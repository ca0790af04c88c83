"""`calibrate`: start the norms of a converted model so that its outputs resemble softmax's."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from relakit.nn.module_names import Where, check_patterns, is_selected, names_of_modules
from relakit.nn.norms import LayerNorm, RMSNorm
from relakit.ops.call import AttentionCall
from relakit.ops.listeners import add_listener, remove_listener
from relakit.ops.precision import wide
from relakit.ops.reference import reference_attention


@dataclass(frozen=True)
class Calibration:
    """How far an attention module's output, behind its norm, is from that of softmax."""

    before: float
    """Mean square of the difference, relative to the mean square of softmax's output; with the
    norm's parameters as they were"""
    after: float
    """The same with the new ones"""


def calibrate(
    model: nn.Module, batches: Iterable[Any], *, where: Where = None
) -> dict[str, Calibration]:
    """Set the norms of a converted model so that it starts close to the softmax model it was.

    ReLU weights are on another scale than softmax's, and a norm's gain starts without knowing
    what the output projection behind it expects. Here the model reads some batches as if it still
    had softmax, and each feature's gain becomes the factor that brings ReLA's output closest to
    softmax's (least squares); gates start half open. So the model loses less by its conversion,
    and needs fewer updates to get it back::

        relakit.convert_attention(model)  # or relakit.hf.convert(model)
        relakit.calibrate(model, batches)

    It works for all modules in which a norm of relakit follows `relakit.attention`: those that
    conversion makes, and your own. Attention without a norm is left as it is.

    Args:
        model: a model that was trained with softmax attention, then converted.
        batches: some of what the model was trained on; a few thousand tokens are enough. A tensor
            is the model's argument, a tuple or list its arguments, a mapping those by name.
        where: which norms, by the name of the module that they are in, as in
            `relakit.convert_attention`; None for all. The others are not changed.

    Returns:
        For each attention module by name, how far its output is from softmax's.

    Raises:
        ValueError: there is no norm to calibrate, no batch, or an output that is not finite.
    """
    found = _norms_by_name(model, where)
    meters = {norm: _Meter(norm, name) for name, norm in found.items()}
    with _reading(model, list(meters.values())) as run:
        count = 0
        for count, batch in enumerate(batches, 1):
            run(batch)
    if count == 0:
        raise ValueError("there are no batches to calibrate with")
    silent = [meter.name for meter in meters.values() if meter.rows == 0]
    if silent:
        raise ValueError(
            f"the attention of {', '.join(silent)} did not run with these batches; leave it out "
            "with where=..."
        )
    results = {meter.name: meter.result() for meter in meters.values()}
    for meter in meters.values():
        meter.install()
    return results


class _Meter:
    """Adds up, feature by feature, what the least squares of one norm need."""

    def __init__(self, norm: RMSNorm, name: str, positions_first: bool) -> None:
        self.norm = norm
        self.name = name
        self._positions_first = positions_first
        self.rows = 0
        zeros = torch.zeros(norm.dim, dtype=torch.float64)
        self._softmax, self._ours, self._product = zeros.clone(), zeros.clone(), zeros.clone()
        self._change = torch.zeros((), dtype=torch.float64)

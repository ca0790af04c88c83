"""Explains why a module's call failed in torch, in terms of the module's arguments.

Nothing is checked before a call fails, so that calls that succeed do not pay for it.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from relakit.nn.arguments import check_switch


def explain_failure(
    module: nn.MultiheadAttention, inputs: dict[str, Tensor], need_weights: object
) -> None:
    """Raise if the arguments do not fit the module or each other; return if that is not why.

    For the arguments of a ``forward`` that failed with a RuntimeError from torch.
    """
    check_switch("need_weights", need_weights, "; pass masks by name: attn_mask=...")
    for name, tensor in inputs.items():
        if tensor.layout != torch.strided:
            raise ValueError(
                f"{name} has the layout {tensor.layout}; pass an ordinary tensor: {name}.to_dense()"
            )
    parameters = dict(_projections_of(module))
    if not parameters:  # a replica of nn.DataParallel has none
        return
    weight_name, weight = next(iter(parameters.items()))
    for name, tensor in inputs.items():
        if tensor.device != weight.device:
            raise ValueError(
                f"{name} is on {tensor.device} and the module's weights are on {weight.device}; "
                f"move one of them: {name}.to({str(weight.device)!r}) or "
                f"module.to({str(tensor.device)!r})"
            )
    device = weight.device.type
    if device != "meta" and torch.is_autocast_enabled(device):  # autocast converts dtypes
        return
    for name, parameter in parameters.items():
        if parameter.dtype != weight.dtype:
            raise ValueError(
                f"the module's parameters have different dtypes: {weight_name} is {weight.dtype}, "
                f"{name} is {parameter.dtype}; bring them to one with module.to({weight.dtype})"
            )
    for name, tensor in inputs.items():
        if tensor.dtype != weight.dtype:
            _raise_for_dtype(name, tensor.dtype, weight.dtype)


def _projections_of(module: nn.MultiheadAttention) -> Iterator[tuple[str, nn.Parameter]]:
    for name, parameter in module.named_parameters():
        if not name.startswith(("norm.", "threshold")):  # these may have any dtype
            yield name, parameter


def _raise_for_dtype(name: str, given: torch.dtype, wanted: torch.dtype) -> None:
    if given.is_floating_point:
        raise ValueError(
            f"{name} is {given} and the module's weights are {wanted}; convert one of them: "
            f"{name}.to({wanted}) or module.to({given})"
        )
    hint = "" if given.is_complex else " (token ids go through an nn.Embedding first)"
    raise ValueError(
        f"{name} must be floating point, of dtype {wanted} as the module's weights, got "
        f"{given}{hint}"
    )

"""Where conversion stores what it adds to an attention module, and the sizes that it needs."""

from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

from relakit.nn.core import AttentionParts
from relakit.nn.variants import ATTENTIONS
from relakit.ops.norms import rms_norm

CHILD: Final = "rela"
"""The name of the parts inside the attention module: ``….self_attn.rela.norm.weight``."""

_TOGETHER: Final = ("all_head_size", "inner_dim")
_OUTPUT_PROJECTIONS: Final = (
    "o_proj",
    "out_proj",
    "dense",
    "c_proj",
    "o",
    "wo",
    "Wo",
    "proj",
    "projection",
    "projection_layer",
    "output_projection",
    "linear_out",
    "out_lin",
    "output",
)
_HEADS: Final = ("num_attention_heads", "num_heads", "n_heads", "n_head", "num_head", "heads")
_HEAD_DIMS: Final = ("v_head_dim", "head_dim", "attention_head_size", "key_value_proj_dim")


class HeadSizes(NamedTuple):
    """The number of heads, and the number of features of all heads together."""

    heads: int
    dim: int


class GainlessRMSNorm(nn.Module):
    """Eq. 4 without parameters, for models that were not converted."""

    def forward(self, z: Tensor) -> Tensor:
        return rms_norm(z, torch.ones((), device=z.device))


GAINLESS: Final = GainlessRMSNorm()
PLAIN: Final = ATTENTIONS["relu-rms"]
"""What ``attn_implementation="rela"`` computes without a conversion. A gain would be one more
factor on the inputs of the output projection, so leaving it out loses only a starting point."""


def parts_of(module: nn.Module) -> AttentionParts | None:
    """What conversion added to the module; None if it was not converted."""
    parts = module._modules.get(CHILD)
    return parts if isinstance(parts, AttentionParts) else None


def head_sizes(name: str, module: nn.Module) -> HeadSizes:
    """The sizes of a module of transformers, where they have many names.

    Raises:
        ValueError: the sizes cannot be found, or do not fit each other.
    """
    heads = _number(module, _HEADS)
    config = getattr(module, "config", None)
    if heads is None:
        heads = _number(config, _HEADS)
    dim = _number(module, _TOGETHER) or _input_of_projection(module)
    per_head = _number(module, _HEAD_DIMS) or _number(config, _HEAD_DIMS)
    if dim is None and heads is not None and per_head is not None:
        dim = heads * per_head
    if heads is None and dim is not None and per_head is not None:
        heads = dim // per_head
    if heads is None or dim is None or dim % heads != 0:
        raise ValueError(
            f"{name} is a {type(module).__name__}, whose number of heads and features could not "
            f"be found out (got heads={heads} and features={dim}); leave it out with where=..."
        )
    return HeadSizes(heads, dim)


def _number(thing: object, names: tuple[str, ...]) -> int | None:
    for name in names:
        value = getattr(thing, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def _input_of_projection(module: nn.Module) -> int | None:
    """The input features of the projection after the heads, if the module contains it."""
    for name in _OUTPUT_PROJECTIONS:
        projection = getattr(module, name, None)
        if isinstance(projection, nn.Module):
            # `nx` is the name in GPT-2's Conv1D.
            return _number(projection, ("in_features", "nx"))
    return None

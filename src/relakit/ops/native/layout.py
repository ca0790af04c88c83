"""How heads lie in memory: ``[batch, heads, positions, features]``, or side by side in projections.

A projection is ``[batch, positions, heads * features]``, or has the positions first; ``positions``
is the index of that dimension, 1 or 0.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def with_rows(x: Tensor) -> Tensor:
    """The tensor with contiguous features, which the kernels need; copied only if necessary."""
    if x.stride(-1) == 1:
        return x
    # Not `contiguous`, which returns an empty tensor unchanged.
    return x.clone(memory_format=torch.contiguous_format)


def in_four_dims(mask: Tensor) -> Tensor:
    """A mask with all four dimensions ``[batch, heads, queries, keys]``; 1 where it broadcasts."""
    while mask.dim() < 4:
        mask = mask[None]
    return mask


def split_projections(
    projections: Sequence[Tensor], heads: int, positions: int
) -> tuple[Tensor, ...]:
    """Query, key and value, ``[batch, heads, positions, features]``, as views of projections.

    Keys and values that have their own projections may have fewer heads.
    """
    first, *others = projections
    if not others:
        return split_projection(first, 3, heads, positions)
    parts = 3 - len(others)
    # Without features, the sizes do not show how many heads there are.
    key_heads = others[0].size(-1) * heads // (parts * first.size(-1)) if first.size(-1) else heads
    of_keys = (split_projection(x, parts, key_heads, positions) for x in others)
    return (
        *split_projection(first, 1, heads, positions),
        *(head for several in of_keys for head in several),
    )


def split_projection(
    projection: Tensor, parts: int, heads: int, positions: int
) -> tuple[Tensor, ...]:
    """The same for one projection, which holds ``parts`` of query, key and value."""
    first, second, features = projection.shape
    split = projection.view(first, second, parts, heads, features // parts // heads)
    # [parts, batch, heads, positions, features]
    return split.permute((2, 0, 3, 1, 4) if positions == 1 else (2, 1, 3, 0, 4)).unbind(0)


def heads_inside(x: Tensor, positions: int) -> Tensor:
    """``[batch, heads, positions, features]`` as a view ``[batch, positions, heads, features]``."""
    return x.permute((0, 2, 1, 3) if positions == 1 else (2, 0, 1, 3))


def concatenated(x: Tensor, positions: int) -> Tensor:
    """From ``[batch, heads, positions, features]`` to the layout of a projection."""
    inside = heads_inside(x, positions)
    first, second, count, features = inside.shape
    # Not `flatten`, which does not support batched gradients.
    return inside.reshape(first, second, count * features)


def joined_projections(tensors: Sequence[Tensor], count: int, positions: int) -> list[Tensor]:
    """The reverse of `split_projections`: ``count`` projections from query, key and value."""
    query, key, value = (concatenated(x, positions) for x in tensors)
    if count == 1:
        return [torch.cat((query, key, value), -1)]
    return [query, key, value] if count == 3 else [query, torch.cat((key, value), -1)]

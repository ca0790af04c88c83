"""From the input of a multi-head attention module to the arguments of `relakit.attention`.

Written for any `torch.nn.MultiheadAttention`, so that `relakit.capture` can look into PyTorch's own
modules too. Sizes: ``batch``, ``queries``, ``keys``, ``heads``, ``head dim``.
"""

from typing import NamedTuple

import torch.nn.functional as F

import torch
from relakit.nn.masks import merge_masks
from relakit.ops.call import check_tensor, shape_of
from torch import Tensor, nn


class ProjectedHeads(NamedTuple):
    """Arguments of `relakit.attention`, and where the positions were in the module's input."""

    query: Tensor
    """``[batch, heads, queries, head dim]``"""
    key: Tensor
    """``[batch, heads, keys, head dim]``, with the keys that the module appends"""
    value: Tensor
    """``[batch, heads, keys, head dim]``"""
    attn_mask: Tensor | None
    """In SDPA's convention, broadcasts to ``[batch, heads, queries, keys]``"""
    is_causal: bool
    positions: int
    """Dimension of the positions in the module's (batched) input: 0 or 1"""

    def arrange(self, output: Tensor) -> Tensor:
        """``[batch, heads, queries, head dim]`` in the input's layout, heads and features last."""
        return output.permute((2, 0, 1, 3) if self.positions == 0 else (0, 2, 1, 3))


def project_heads(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    key_padding_mask: Tensor | None,
    need_weights: bool,
    attn_mask: Tensor | None,
    is_causal: bool,
) -> ProjectedHeads:
    """Check the arguments of ``module.forward``, project, and split into heads."""
    positions = 1 if module.batch_first or query.dim() == 2 else 0
    _check_inputs(module, query, key, value, positions)
    is_one_tensor = query is key and key is value
    _check_masks(module, query, key, positions, attn_mask, key_padding_mask)
    if query.dim() == 2:
        query, key, value = query[None], key[None], value[None]
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    batch = query.size(1 - positions)
    if is_causal and attn_mask is None:
        raise ValueError(
            "is_causal=True is a hint about attn_mask and needs it; pass for example "
            "torch.nn.Transformer.generate_square_subsequent_mask(length) as attn_mask"
        )
    # PyTorch's rule, to the letter: the hint replaces the mask in just this case.
    is_causal = is_causal and key_padding_mask is None and not need_weights

    q, k, v = _project(module, query, key, value, is_one_tensor=is_one_tensor)
    k, v, extra_keys = _append_keys(module, k, v, positions)
    mask = None
    if not is_causal:
        mask = merge_masks(
            attn_mask,
            key_padding_mask,
            batch=batch,
            heads=module.num_heads,
            dtype=q.dtype,
            extra_keys=extra_keys,
        )
    q, k, v = (_split_heads(x, module.num_heads, positions) for x in (q, k, v))
    return ProjectedHeads(q, k, v, mask, is_causal, positions)


def _project(
    module: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor, *, is_one_tensor: bool
) -> tuple[Tensor, Tensor, Tensor]:
    # Declared as always there by PyTorch, but None with kdim, vdim or bias=False.
    weight: Tensor | None = module.in_proj_weight
    bias: Tensor | None = module.in_proj_bias
    if weight is not None and is_one_tensor:
        q, k, v = F.linear(query, weight, bias).chunk(3, dim=-1)
        return q, k, v
    if weight is not None:
        weights: tuple[Tensor, ...] = weight.chunk(3)
    else:
        weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    q, k, v = (
        F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )
    return q, k, v


def _append_keys(
    module: nn.MultiheadAttention, key: Tensor, value: Tensor, positions: int
) -> tuple[Tensor, Tensor, int]:
    """Add the learned key and value of ``add_bias_kv`` and the zeros of ``add_zero_attn``."""
    extra_keys = []
    extra_values = []
    shape = list(key.shape)
    shape[positions] = 1
    if module.bias_k is not None and module.bias_v is not None:
        extra_keys.append(module.bias_k.to(key.dtype).expand(shape))
        extra_values.append(module.bias_v.to(value.dtype).expand(shape))
    if module.add_zero_attn:
        extra_keys.append(key.new_zeros(shape))
        extra_values.append(value.new_zeros(shape))
    if not extra_keys:
        return key, value, 0
    return (
        torch.cat([key, *extra_keys], dim=positions),
        torch.cat([value, *extra_values], dim=positions),
        len(extra_keys),
    )


def _split_heads(tensor: Tensor, heads: int, positions: int) -> Tensor:
    """To ``[batch, heads, positions, head dim]``, without a copy."""
    first, second, features = tensor.shape
    split = tensor.reshape(first, second, heads, features // heads)
    return split.permute(1, 2, 0, 3) if positions == 0 else split.transpose(1, 2)


def _check_inputs(
    module: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor, positions: int
) -> None:
    inputs = {"query": query, "key": key, "value": value}
    for name, tensor in inputs.items():
        check_tensor(name, tensor)
        if tensor.is_nested:
            raise ValueError(f"{name} is a nested tensor; pad it and pass key_padding_mask")
    if query.dim() not in (2, 3) or not query.dim() == key.dim() == value.dim():
        raise ValueError(
            "query, key and value must all have 3 dimensions (batched) or all have 2 (unbatched), "
            + _got_shapes(inputs)
        )
    sizes = {"query": module.embed_dim, "key": module.kdim, "value": module.vdim}
    arguments = {"query": "embed_dim", "key": "kdim", "value": "vdim"}
    for name, tensor in inputs.items():
        if tensor.size(-1) != sizes[name]:
            raise ValueError(
                f"{name} must have {arguments[name]} = {sizes[name]} features (last dimension), "
                f"got {tensor.size(-1)}"
            )
    if key.shape[:-1] != value.shape[:-1]:
        raise ValueError(
            f"key and value must have the same batch and positions, {_got_shapes(inputs)}"
        )
    if query.dim() == 3 and query.size(1 - positions) != key.size(1 - positions):
        layout = "[batch, positions, features]" if positions else "[positions, batch, features]"
        raise ValueError(
            f"query and key must have the same batch size, {_got_shapes(inputs)}; the module's "
            f"layout is {layout} (batch_first={module.batch_first})"
        )


def _check_masks(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    positions: int,
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
) -> None:
    if attn_mask is None and key_padding_mask is None:
        return
    is_batched = query.dim() == 3
    batch = query.size(1 - positions) if is_batched else 1
    queries, keys = (x.size(positions if is_batched else 0) for x in (query, key))
    masks = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask}
    for name, mask in masks.items():
        if mask is None:
            continue
        check_tensor(name, mask)
        if mask.dtype != torch.bool and not mask.is_floating_point():
            raise ValueError(
                f"{name} must be of dtype torch.bool (True = do not attend) or floating point "
                f"(added to the scores), got {mask.dtype}"
            )
    if attn_mask is not None:
        shared = (queries, keys)
        per_head = (batch * module.num_heads, queries, keys)
        if attn_mask.shape not in (shared, per_head):
            raise ValueError(
                f"attn_mask must have shape {shared} [queries, keys] or {per_head} "
                f"[batch * heads, queries, keys], got {shape_of(attn_mask)}"
            )
    padding_shape, legend = ((batch, keys), "[batch, keys]") if is_batched else ((keys,), "[keys]")
    if key_padding_mask is not None and key_padding_mask.shape != padding_shape:
        raise ValueError(
            f"key_padding_mask must have shape {padding_shape} {legend}, "
            f"got {shape_of(key_padding_mask)}"
        )


def _got_shapes(inputs: dict[str, Tensor]) -> str:
    return "got " + ", ".join(f"{name} {shape_of(tensor)}" for name, tensor in inputs.items())

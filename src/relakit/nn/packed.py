"""Attention directly on jagged tensors: sequences packed one after the other, without padding."""

from typing import Any

import torch
from torch import Tensor

from relakit.nn.fused import in_one_step, may_be_one_step
from relakit.nn.projection import project_linearly
from relakit.nn.threshold import current_threshold
from relakit.ops.causal_bias import causal_pattern
from relakit.ops.precision import without_autocast
from relakit.ops.reach import Reach, Window, reach_of


def forward_packed(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
) -> Tensor | None:
    """The module's output for jagged inputs that fit each other; None if they must be padded.

    The module is a `MultiheadAttention`, and the call has no padding mask and needs no weights.
    """
    if module.bias_k is not None or module.add_zero_attn:
        return None
    if not may_be_one_step(module.attention, module.norm, module.backend):
        return None
    inputs = (query, key, value)
    if not all(_is_whole(x) for x in inputs):
        return None
    causal = _causality(module, query, key, attn_mask, is_causal)
    if causal is None:
        return None
    # All three may be the same tensor, which is then projected in one product.
    rows = {id(x): x.values()[None] for x in inputs}
    projections = project_linearly(module, *(rows[id(x)] for x in inputs))
    reach = _reach(query, key, window=module.window, is_causal=causal)
    with without_autocast(query):
        mixed = in_one_step(
            projections,
            module.num_heads,
            1,
            None,
            module.dropout if module.training else 0.0,
            False,
            current_threshold(module.attention, module.threshold),
            module.attention,
            False,
            module.backend,
            module.norm,
            reach,
        )
    if mixed is None:
        return None
    output: Tensor = module.out_proj(mixed.output)
    jagged: Any = query
    # The same offsets object: PyTorch adds jagged tensors only if they share it.
    return torch.nested.nested_tensor_from_jagged(output[0], jagged.offsets())


def _causality(
    module: Any, query: Any, key: Any, attn_mask: Tensor | None, is_causal: bool
) -> bool | None:
    """Whether a query sees only the keys up to its own; None if the masking is not that simple.

    Also None for sizes that do not fit: the padded path has the error messages for them.
    """
    if attn_mask is None:
        return None if is_causal else False
    queries, keys = (int(x.offsets().diff().max()) for x in (query, key))
    pattern = causal_pattern(attn_mask)
    if pattern is not None:
        fits = not pattern.is_lower_right and (pattern.queries, pattern.keys) == (queries, keys)
        return True if fits else None
    heads = module.num_heads * (query.offsets().numel() - 1)
    fits = tuple(attn_mask.shape) in ((queries, keys), (heads, queries, keys))
    return True if is_causal and fits else None


def _is_whole(x: Any) -> bool:
    """Whether the tensor is jagged, with no gaps between its sequences."""
    if x.layout != torch.jagged or x.lengths() is not None:
        return False
    return int(x.offsets()[0]) == 0 and int(x.offsets()[-1]) == x.values().size(0)


def _reach(query: Any, key: Any, *, window: Window, is_causal: bool) -> Reach | None:
    starts = [query.offsets(), key.offsets()]
    return reach_of(is_causal=is_causal, window=window, align="upper_left", starts=starts)

"""From the input of a multi-head attention module to projected queries, keys and values.

It works for any `torch.nn.MultiheadAttention`, so that `relakit.capture` can record PyTorch's own
modules too. Sizes: ``batch``, ``queries``, ``keys``, ``heads``, ``head dim``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relakit.nn.cache import KeyValueCache
from relakit.nn.masks import hidden_too, merge_masks
from relakit.ops.call import check_device, check_tensor, shape_of
from relakit.ops.causal_bias import causal_pattern
from relakit.ops.native.layout import split_projections
from relakit.ops.reach import Alignment, Reach, Window, reach_of


class Projections(NamedTuple):
    """Queries, keys and values with heads side by side, the mask, and the layout."""

    tensors: tuple[Tensor, ...]
    """``[batch, positions, heads * head dim]``, or with positions first: one that holds query, key
    and value; or two, for the query and for key and value together; or three. Keys include those
    that the module appends."""
    attn_mask: Tensor | None
    """In SDPA's convention, broadcasts to ``[batch, heads, queries, keys]``."""
    is_causal: bool
    heads: int
    positions: int
    """Which dimension holds the positions: 0 or 1."""
    reach: Reach | None = None
    """Which keys a query sees by its position, causality included; then ``is_causal`` is False."""

    def apart(self) -> tuple[Tensor, ...]:
        """Query, key and value, ``[batch, heads, positions, head dim]``, without a copy."""
        return split_projections(self.tensors, self.heads, self.positions)


def project(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    key_padding_mask: Tensor | None,
    need_weights: bool,
    attn_mask: Tensor | None,
    is_causal: bool,
    cache: KeyValueCache | None = None,
) -> Projections:
    """Check the arguments of ``module.forward``, and project."""
    if not _clearly_fit(module, query, key, value):
        _check_inputs(module, query, key, value)
    positions = 1 if module.batch_first or query.dim() == 2 else 0
    past = 0
    if cache is not None:
        if not isinstance(cache, KeyValueCache):
            raise TypeError(f"cache must be a KeyValueCache, got {type(cache).__name__}")
        past = len(cache)
    reach: Reach | None = None
    if cache is not None and is_causal:  # queries are the last positions, even with a mask
        reach, is_causal = Reach(after=0, is_lower_right=True), False
    if attn_mask is not None or key_padding_mask is not None:
        reach, attn_mask = _without_bias(reach, attn_mask, query, key, positions, past)
        check_masks(module, query, key, positions, attn_mask, key_padding_mask, past)
    if is_causal and attn_mask is None and reach is None:
        raise ValueError(
            "is_causal=True is a hint about attn_mask and needs it; pass for example "
            "torch.nn.Transformer.generate_square_subsequent_mask(length) as attn_mask"
        )
    # PyTorch's rule, to the letter: only in this case does the hint replace the mask.
    is_causal = is_causal and reach is None and key_padding_mask is None and not need_weights
    window: Window = getattr(module, "window", None)
    if window is not None:
        reach = _with_window(reach, window, is_causal, is_lower_right=cache is not None)
        is_causal, attn_mask = False, None if is_causal else attn_mask

    tensors = project_linearly(module, query, key, value)
    extra_keys = 0
    if query.dim() == 2:
        tensors = tuple(tensor[None] for tensor in tensors)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    if cache is not None:
        tensors = _append_to_cache(module, tensors, cache, positions)
    if module.bias_k is not None or module.add_zero_attn:
        if reach is not None:  # every query sees the appended keys, which takes a mask
            seen = reach.visible(*_lengths(query, key, positions, past), query.device)
            attn_mask = hidden_too(attn_mask, ~seen)
            reach = None
        tensors, extra_keys = _append_keys(module, tensors, positions)
    mask = None
    if not is_causal and (attn_mask is not None or key_padding_mask is not None):
        mask = merge_masks(
            attn_mask,
            key_padding_mask,
            batch=tensors[0].size(1 - positions),
            heads=module.num_heads,
            dtype=tensors[0].dtype,
            extra_keys=extra_keys,
        )
    return Projections(tensors, mask, is_causal, module.num_heads, positions, reach)


def _without_bias(
    reach: Reach | None,
    attn_mask: Tensor | None,
    query: Tensor,
    key: Tensor,
    positions: int,
    past: int,
) -> tuple[Reach | None, Tensor | None]:
    """Reach and mask; a mask of `torch.nn.attention.bias` becomes a reach, to save memory."""
    pattern = causal_pattern(attn_mask)
    if pattern is None:
        return reach, attn_mask
    pattern.check_sizes(*_lengths(query, key, positions, past))
    return pattern.reach, None


def _with_window(
    reach: Reach | None, window: Window, is_causal: bool, *, is_lower_right: bool
) -> Reach:
    align: Alignment = "lower_right" if is_lower_right else "upper_left"
    windowed = reach_of(is_causal=is_causal, window=window, align=align, starts=None)
    assert windowed is not None
    if reach is None:
        return windowed
    return reach._replace(before=windowed.before)  # any reach here is causal


def _append_to_cache(
    module: nn.MultiheadAttention,
    tensors: tuple[Tensor, ...],
    cache: KeyValueCache,
    positions: int,
) -> tuple[Tensor, ...]:
    """The query, and all keys and values so far."""
    query, key, value = _apart(module, tensors)
    return (query, *cache.append(key, value, positions=positions))


def _apart(
    module: nn.MultiheadAttention, tensors: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """The projections of query, key and value, as views of ``tensors``."""
    query, *others = tensors
    if not others:
        query, *others = query.split(module.embed_dim, -1)  # type: ignore[no-untyped-call]
    elif len(others) == 1:
        others = list(others[0].chunk(2, -1))
    return query, others[0], others[1]


def project_linearly(
    module: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, ...]:
    """Project in as few products as possible: one for self-attention, two if key is value."""
    # PyTorch declares that these always exist, but they are None with kdim, vdim or bias=False.
    weight: Tensor | None = module.in_proj_weight
    bias: Tensor | None = module.in_proj_bias
    if weight is not None and key is value:
        if query is key:
            return (F.linear(query, weight, bias),)
        size = module.embed_dim
        of_query, of_both = weight.split((size, 2 * size))  # type: ignore[no-untyped-call]
        if bias is None:
            return F.linear(query, of_query), F.linear(key, of_both)
        bias_of_query, bias_of_both = bias.split((size, 2 * size))  # type: ignore[no-untyped-call]
        return F.linear(query, of_query, bias_of_query), F.linear(key, of_both, bias_of_both)
    if weight is not None:
        weights: tuple[Tensor, ...] = weight.chunk(3)
    else:
        weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    biases: Sequence[Tensor | None] = (None, None, None)
    if bias is not None:  # keys and values may have fewer heads
        biases = bias.split([w.size(0) for w in weights])  # type: ignore[no-untyped-call]
    return tuple(
        F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )


def _append_keys(
    module: nn.MultiheadAttention, tensors: tuple[Tensor, ...], positions: int
) -> tuple[tuple[Tensor, ...], int]:
    """Add the learned key and value of ``add_bias_kv`` and the zeros of ``add_zero_attn``."""
    query, key, value = _apart(module, tensors)
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
    key = torch.cat([key, *extra_keys], dim=positions)
    value = torch.cat([value, *extra_values], dim=positions)
    return (query, key, value), len(extra_keys)


def _clearly_fit(module: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether this is the usual case, which needs no further checks; takes far less time."""
    if not (key is value and type(query) is Tensor and type(key) is Tensor):
        return False
    if query.dim() != 3 or key.dim() != 3 or query.is_nested or key.is_nested:
        return False
    size = module.embed_dim
    if not query.size(2) == key.size(2) == size == module.kdim == module.vdim:
        return False
    batch = 0 if module.batch_first else 1
    return query is key or query.size(batch) == key.size(batch)


def _check_inputs(module: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor) -> None:
    inputs = {"query": query, "key": key, "value": value}
    for name, tensor in inputs.items():
        check_tensor(name, tensor)
        if tensor.is_nested:
            raise ValueError(
                f"{name} is a nested tensor and query is not; make all three nested, or pad it and "
                "pass key_padding_mask"
            )
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
    batch, layout = (0, "[batch, positions, ") if module.batch_first else (1, "[positions, batch, ")
    if query.dim() == 3 and query.size(batch) != key.size(batch):
        raise ValueError(
            f"query and key must have the same batch size, {_got_shapes(inputs)}; the module's "
            f"layout is {layout}features] (batch_first={module.batch_first})"
        )


def ordinary_mask(
    attn_mask: Tensor | None, query: Tensor, key: Tensor, positions: int
) -> Tensor | None:
    """The mask; for one of `torch.nn.attention.bias`, the mask it stands for, True = ignore."""
    pattern = causal_pattern(attn_mask)
    if pattern is None:
        return attn_mask
    pattern.check_sizes(*_lengths(query, key, positions))
    return ~pattern.reach.visible(pattern.queries, pattern.keys, query.device)


def check_masks(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    positions: int,
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    past: int = 0,
) -> None:
    """Raise if a mask's dtype or shape does not fit the input."""
    is_batched = query.dim() == 3
    batch = query.size(1 - positions) if is_batched else 1
    queries, keys = _lengths(query, key, positions, past)
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
        check_device(name, mask, query)
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


def _lengths(query: Tensor, key: Tensor, positions: int, past: int = 0) -> tuple[int, int]:
    """The numbers of queries and keys, including the keys in a cache."""
    dim = positions if query.dim() == 3 else 0
    return query.size(dim), past + key.size(dim)


def _got_shapes(inputs: dict[str, Tensor]) -> str:
    return "got " + ", ".join(f"{name} {shape_of(tensor)}" for name, tensor in inputs.items())

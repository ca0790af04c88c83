"""transformers' masks in the convention of `relakit.attention`."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.masking_utils import sdpa_mask


def rela_mask(
    *args: Any, q_length: int, q_offset: int | Tensor = 0, config: object = None, **kwargs: Any
) -> Tensor | None:
    """The mask that transformers makes for SDPA: ``[batch, 1, queries, keys]``, True = attend.

    None where the module's ``is_causal`` says it all. Only modules of models that support SDPA can
    be trusted on that; others always get a mask. For a single query, None means that it sees all
    keys. That is wrong for the first token in a static cache, whose other slots are still empty, so
    it gets a mask too.
    """
    knows_sdpa = _know_sdpa(type(config))
    if not knows_sdpa or (q_length == 1 and (isinstance(q_offset, Tensor) or q_offset == 0)):
        kwargs["allow_is_causal_skip"] = False
    if not knows_sdpa:
        kwargs["allow_is_bidirectional_skip"] = False
    mask: Tensor | None = sdpa_mask(
        *args, q_length=q_length, q_offset=q_offset, config=config, **kwargs
    )
    return mask


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _know_sdpa(config_class: type) -> bool:
    """Whether all loaded model classes with this config class support SDPA."""
    known = _KNOWN.get(config_class)
    if known is None:
        users = [kind for kind in _subclasses(PreTrainedModel) if kind.config_class is config_class]
        known = bool(users) and all(kind._supports_sdpa for kind in users)
        _KNOWN[config_class] = known
    return known


_KNOWN: dict[type, bool] = {}
"""Results of `_know_sdpa`: the search takes longer than running a small model."""


def _subclasses(kind: type[PreTrainedModel]) -> Iterator[type[PreTrainedModel]]:
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)


def is_causal_without_mask(module: nn.Module, is_causal: bool | None, queries: int) -> bool:
    """Whether query i sees only the keys 0 to i, if there is no mask.

    As in transformers' SDPA attention, a single query, the newest, sees all keys.

    Raises:
        ValueError: neither the argument nor the module says whether it is causal.
    """
    if is_causal is None:
        is_causal = getattr(module, "is_causal", None)
    if is_causal is None:
        raise ValueError(
            f"{type(module).__name__} passes no mask and does not say whether it is causal; give "
            "the model an attention_mask with a zero in it, or set is_causal = True or False on "
            "the module"
        )
    return bool(is_causal) and queries > 1


def checked_mask(mask: Tensor, query: Tensor) -> Tensor:
    """A boolean mask unchanged; an additive mask with -inf wherever it means "do not attend".

    transformers writes the smallest finite number instead. Softmax turns both into 0, but here such
    a key would count as visible.
    """
    if mask.dim() != 4:
        raise ValueError(
            "attention_mask must have 4 dimensions [batch, heads, queries, keys] when it arrives "
            f"at the attention function, got shape {tuple(mask.shape)}"
        )
    if not mask.is_floating_point():
        return mask
    masked = mask <= torch.finfo(mask.dtype).min / 2
    return mask.to(_bias_dtype(query)).masked_fill(masked, -math.inf)


def add_bias(mask: Tensor | None, bias: Tensor, query: Tensor, *, is_causal: bool) -> Tensor:
    """One additive mask from a bias on the scores and a mask, or the causal pattern.

    Args:
        mask: as `checked_mask` returns it; None for none.
        bias: broadcasts to ``[batch, heads, queries, keys]``.
        query: its dtype determines the precision.
        is_causal: query i sees only the keys 0 to i; there is no mask then.
    """
    bias = bias.to(_bias_dtype(query))
    if is_causal:
        queries, keys = bias.shape[-2:]
        mask = torch.ones(queries, keys, dtype=torch.bool, device=bias.device).tril()
    if mask is None:
        return bias
    if mask.dtype == torch.bool:
        return torch.where(mask, bias, -math.inf)
    return bias + mask


def _bias_dtype(query: Tensor) -> torch.dtype:
    # The scores of half-precision queries are float32.
    return torch.float64 if query.dtype == torch.float64 else torch.float32

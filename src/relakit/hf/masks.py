"""Masks of transformers, in the convention of `relakit.attention`."""

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

    None where the module's ``is_causal`` says it all. Only models that know SDPA have modules that
    can be believed: others get a mask always. And that a single query sees all keys, which is what
    None means for it, is not true of the first token in a static cache, whose other places are
    still empty: there, a mask is made too.
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
    """Whether all models with such a config, of those that are in use, know SDPA."""
    known = _KNOWN.get(config_class)
    if known is None:
        users = [kind for kind in _subclasses(PreTrainedModel) if kind.config_class is config_class]
        known = bool(users) and all(kind._supports_sdpa for kind in users)
        _KNOWN[config_class] = known
    return known


_KNOWN: dict[type, bool] = {}
"""Results of `_know_sdpa`: the search takes longer than a small model."""


def _subclasses(kind: type[PreTrainedModel]) -> Iterator[type[PreTrainedModel]]:
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)


def is_causal_without_mask(module: nn.Module, is_causal: bool | None, queries: int) -> bool:
    """Whether query i sees the keys 0 to i only, where there is no mask.

    As in transformers' SDPA attention, a single query, the newest, sees all keys.

    Raises:
        ValueError: nobody says whether it is causal.
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
    """A boolean mask as it is; an additive one with -inf wherever it means "do not attend".

    transformers writes the smallest finite number instead. Softmax makes 0 of both, but such a key
    would count as one that may be seen.
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
        query: whose precision decides.
        is_causal: query i sees the keys 0 to i only; there is no mask then.
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
    # Scores of half-precision queries are float32.
    return torch.float64 if query.dtype == torch.float64 else torch.float32

"""The attention function that modules of transformers call."""

import torch
from torch import Tensor, nn
from transformers.utils.output_capturing import _active_collector

from relakit.hf.masks import add_bias, checked_mask, is_causal_without_mask
from relakit.hf.parts import GAINLESS, PLAIN, parts_of
from relakit.hf.saved_choice import is_converted
from relakit.nn.core import AttentionParts
from relakit.nn.fused import attend_in_steps
from relakit.nn.threshold import current_threshold
from relakit.ops.precision import follow_autocast, wide, without_autocast

_REFUSED = {
    "s_aux": "sink tokens (s_aux) compete with keys inside a softmax",
    "cache": "a paged cache (cache=, of continuous batching) is not supported",
    "indices": "attention to selected keys (indices) is not supported",
    "block_indices": "attention to selected blocks of keys (block_indices) is not supported",
    "score_mod": "a function on the scores (score_mod) is not supported",
    "block_mask": "a block mask of FlexAttention (block_mask) is not supported",
}
"""Arguments that change what attention computes, and why they are rejected."""


def rela_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    **kwargs: object,
) -> tuple[Tensor, Tensor | None]:
    """The attention that a module of transformers was converted to, including its norm.

    In a model that was not converted, it is ReLA with a norm that has no parameters.

    Args:
        module: the calling module.
        query: ``[batch, heads, queries, head dim]``.
        key: ``[batch, key heads, keys, head dim]``.
        value: ``[batch, key heads, keys, value dim]``.
        attention_mask: ``[batch, 1 or heads, queries, keys]``, boolean (True = attend) or additive.
        dropout: probability of dropping a weight.
        scaling: factor on the scores; ``head dim ** -0.5`` if None.
        is_causal: used if there is no mask; the module's own value if None.
        position_bias: added to the scores before the activation.
        softcap: scores become ``softcap * tanh(score / softcap)``.
        **kwargs: whatever else transformers passes.

    Returns:
        ``[batch, queries, heads, value dim]``, and ``[batch, heads, queries, keys]`` if the model's
        ``output_attentions`` asks for weights.
    """
    for name, reason in _REFUSED.items():
        if kwargs.get(name) is not None:
            raise ValueError(
                f"{type(module).__name__} cannot use the attention 'rela': {reason}; use another "
                "attn_implementation"
            )
    parts = parts_of(module)
    if parts is None and is_converted(getattr(module, "config", None)):
        raise ValueError(
            f"the model was converted by relakit, but its {type(module).__name__} has no norm: "
            "load it with relakit.hf.from_pretrained, not with transformers alone"
        )
    query, key, value = follow_autocast(query, key, value)
    with without_autocast(query):
        mask = None if attention_mask is None else checked_mask(attention_mask, query)
        causal = mask is None and is_causal_without_mask(module, is_causal, query.size(2))
        if softcap is not None:
            capped = _capped_scores(query, key, scaling, softcap)
            position_bias = capped if position_bias is None else capped + position_bias
            # All scores are in the bias now.
            query, key = torch.zeros_like(query[..., :1]), torch.zeros_like(key[..., :1])
        if position_bias is not None:
            mask = add_bias(mask, position_bias, query, is_causal=causal)
            causal = False
        mixed = attend_in_steps(
            query,
            key,
            value,
            spec=PLAIN if parts is None else parts.attention,
            threshold=0.0 if parts is None else current_threshold(parts.attention, parts.threshold),
            norm=GAINLESS if parts is None else _checked_norm(parts, module, query, value),
            attn_mask=mask,
            dropout_p=dropout,
            is_causal=causal,
            scale=scaling,
            need_weights=_weights_wanted(kwargs),
        )
    output = mixed.output.view(*mixed.output.shape[:2], query.size(1), value.size(-1))
    return output, mixed.weights


def _capped_scores(query: Tensor, key: Tensor, scaling: float | None, softcap: float) -> Tensor:
    """Scores ``[batch, heads, queries, keys]``, in float32 for half precision."""
    scale = query.size(-1) ** -0.5 if scaling is None else scaling
    groups = query.size(1) // key.size(1)
    scores = wide(query) @ wide(key).repeat_interleave(groups, 1).mT * scale
    return softcap * torch.tanh(scores / softcap)


def _checked_norm(
    parts: AttentionParts, module: nn.Module, query: Tensor, value: Tensor
) -> nn.Module | None:
    if parts.norm is not None and query.size(1) * value.size(-1) != parts.norm.dim:
        raise ValueError(
            f"the norm of {type(module).__name__} was made for {parts.norm.dim} features, but its "
            f"{query.size(1)} heads have {value.size(-1)} each; leave such modules out of the "
            "conversion with where=..."
        )
    return parts.norm


def _weights_wanted(kwargs: dict[str, object]) -> bool:
    """Whether the call to the model, or to the module, asked for attention weights."""
    if kwargs.get("output_attentions"):
        return True
    # Most models read the weights from the modules' results with hooks; only this collector shows
    # that they were asked for.
    collected = _active_collector.get()
    return collected is not None and any(name.endswith("attentions") for name in collected)

"""Attention over nested tensors: directly where the kernels can, otherwise via padded tensors.

`nn.TransformerEncoder` passes nested tensors in eval mode, unless `convert_attention` converted it.
A nested tensor is a batch of sequences ``[positions, features]``, each with its own length, in one
of two layouts: `torch.jagged`, or the older `torch.strided`.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from relakit.nn.masks import hidden_too
from relakit.nn.packed import forward_packed
from relakit.nn.projection import check_masks, ordinary_mask
from relakit.ops.call import check_tensor
from relakit.ops.causal_bias import causal_pattern


def forward_nested(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    key_padding_mask: Tensor | None,
    need_weights: bool,
    attn_mask: Tensor | None,
    average_attn_weights: bool,
    is_causal: bool,
) -> tuple[Tensor, Tensor | None]:
    """The module's forward for a nested query, key and value.

    Masks have the sizes of the padded tensors: the longest query and key sequences. The output has
    the layout of the query and shares its lengths, so that the two can be added. The weights are an
    ordinary tensor, padded with zeros.
    """
    inputs = {"query": query, "key": key, "value": value}
    sequences = _sequences(module, inputs)
    if key_padding_mask is None and not need_weights:
        packed = forward_packed(module, query, key, value, attn_mask, is_causal)
        if packed is not None:
            return packed, None
    padded_query = _padded(sequences["query"])
    padded_key = padded_query if key is query else _padded(sequences["key"])
    padded_value = padded_key if value is key else _padded(sequences["value"])
    query_lengths, key_lengths = ([len(x) for x in sequences[name]] for name in ("query", "key"))
    if query_lengths != key_lengths:
        _check_alignment(attn_mask)
    attn_mask = ordinary_mask(attn_mask, padded_query, padded_key, 1)
    check_masks(module, padded_query, padded_key, 1, attn_mask, key_padding_mask)
    output, weights = module.forward(
        padded_query,
        padded_key,
        padded_value,
        key_padding_mask=hidden_too(key_padding_mask, _padding(padded_key, key_lengths)),
        need_weights=need_weights,
        attn_mask=attn_mask,
        average_attn_weights=average_attn_weights,
        is_causal=is_causal,
    )
    if weights is not None:
        rows = _padding(padded_query, query_lengths)[:, :, None]  # [batch, queries, 1]
        weights = weights.masked_fill(rows if weights.dim() == 3 else rows[:, None], 0.0)
    return _nested_like(query, output, query_lengths), weights


def _sequences(
    module: nn.MultiheadAttention, inputs: dict[str, Tensor]
) -> dict[str, tuple[Tensor, ...]]:
    """The sequences of each input, ``[positions, features]``; ValueError if they do not fit."""
    for name, tensor in inputs.items():
        check_tensor(name, tensor)
        if not tensor.is_nested:
            raise ValueError(
                f"query is a nested tensor and {name} is not; make all three nested, or pad them "
                "and pass key_padding_mask"
            )
    if not module.batch_first:
        raise ValueError(
            "nested tensors have the batch first and the module has batch_first=False; build it "
            "with batch_first=True, or pad them and pass key_padding_mask"
        )
    sequences = {name: tuple(tensor.unbind()) for name, tensor in inputs.items()}
    sizes = {"query": module.embed_dim, "key": module.kdim, "value": module.vdim}
    for name, several in sequences.items():
        for sequence in several:
            if sequence.dim() != 2 or sequence.size(1) != sizes[name]:
                raise ValueError(
                    f"the sequences in {name} must have shape [positions, {sizes[name]}], got "
                    f"{tuple(sequence.shape)}"
                )
    lengths = {name: [len(sequence) for sequence in several] for name, several in sequences.items()}
    if len(lengths["query"]) != len(lengths["key"]):
        raise ValueError(
            "query and key must have the same number of sequences, got "
            f"{len(lengths['query'])} and {len(lengths['key'])}"
        )
    if lengths["key"] != lengths["value"]:
        raise ValueError(
            "key and value must have sequences of the same lengths, got "
            f"{lengths['key']} and {lengths['value']}"
        )
    return sequences


def _padded(sequences: tuple[Tensor, ...]) -> Tensor:
    """``[batch, longest, features]``"""
    if not sequences:
        raise ValueError("nested tensors must hold at least one sequence, got none")
    # Not to_padded_tensor, which rejects jagged tensors with holes.
    return pad_sequence(list(sequences), batch_first=True)


def _check_alignment(attn_mask: Tensor | None) -> None:
    """Raise for a causal mask that would have to be aligned with the end of each sequence."""
    pattern = causal_pattern(attn_mask)
    if pattern is not None and pattern.is_lower_right:
        raise ValueError(
            "causal_lower_right is one mask for all sequences, but nested query and key have "
            "different lengths and end in different places; pass a boolean attn_mask of shape "
            "[batch * heads, queries, keys]"
        )


def _padding(padded: Tensor, lengths: list[int]) -> Tensor:
    """``[batch, longest]``, True after the end of a sequence."""
    positions = torch.arange(padded.size(1), device=padded.device)
    return positions >= torch.tensor(lengths, device=padded.device)[:, None]


def _nested_like(nested: Tensor, padded: Tensor, lengths: list[int]) -> Tensor:
    """The tensor without its padding, in the layout of ``nested``."""
    sequences = [x[:length] for x, length in zip(padded, lengths, strict=True)]
    if nested.layout != torch.jagged:
        return torch.nested.as_nested_tensor(sequences)
    values = torch.cat(sequences)
    jagged: Any = nested  # a subclass of Tensor that torch does not declare
    offsets, holes = jagged.offsets(), jagged.lengths()
    if holes is not None:  # there are gaps between sequences, as after torch.nested.narrow
        places = [
            torch.arange(start, start + length, device=values.device)
            for start, length in zip(offsets.tolist(), lengths, strict=False)
        ]
        whole = values.new_zeros(jagged.values().size(0), values.size(1))
        values = whole.index_copy(0, torch.cat(places), values)
    # The same offsets object: PyTorch adds jagged tensors only if they share it.
    return torch.nested.nested_tensor_from_jagged(values, offsets, holes)

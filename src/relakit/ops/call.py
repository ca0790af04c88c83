"""One attention call: what the user asked for, and whether the arguments fit together."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from relakit.ops.options import ActivationName, check_options
from relakit.ops.reach import Reach, check_starts


@dataclass(kw_only=True)  # a frozen one would take three times as long to create
class AttentionCall:
    """The arguments of `relakit.attention`, in the conventions of SDPA. Treat it as frozen.

    Shapes: query ``[..., heads, queries, dim]``, key ``[..., key heads, keys, dim]``, value
    ``[..., value heads, keys, value dim]``; the mask broadcasts to ``[..., heads, queries, keys]``.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None = None
    """Boolean, True = attend; or floating point, added to the scores."""
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False
    activation: ActivationName = "relu"
    threshold: float | Tensor = 0.0
    """A number; or a tensor with one number per head, ``[heads]``, or one for all, ``[]``."""
    power: float = 1.0
    length_exponent: float = 0.0
    need_weights: bool | Literal["csr"] = False
    """True for a dense tensor; ``"csr"`` for a sparse one, ``[rows, keys]``."""
    need_statistics: bool = False
    reach: Reach | None = None
    """Which keys a query sees by its position, causality included; None: see ``is_causal``."""

    @property
    def score_scale(self) -> float:
        """The factor on the scores: ``scale``, or dim ** -0.5 if that is None."""
        if self.scale is not None:
            return self.scale
        features = self.query.size(-1)
        # Without features all scores are 0, whatever the scale.
        return float(features**-0.5) if features else 1.0

    @property
    def weights_shape(self) -> tuple[int, ...]:
        """Shape of the attention weights: [..., heads, queries, keys]."""
        lead = _broadcast_lead(self.query, self.key, self.enable_gqa)
        return (*lead, self.query.size(-2), self.key.size(-2))

    def visible_by_place(self) -> Tensor | None:
        """``[queries, keys]``, True = attend, ignoring the mask; None if every query sees all."""
        reach = Reach(after=0) if self.is_causal else self.reach  # aligned upper left, as in SDPA
        if reach is None:
            return None
        return reach.visible(self.query.size(-2), self.key.size(-2), self.query.device)


class RowStatistics(NamedTuple):
    """Facts about the weights of each query and head, ``[..., heads, queries]``."""

    nonzeros: Tensor
    """The number of weights that are not zero; int32."""
    sums: Tensor
    """The sum of the weights; float32, or float64 for float64 input."""

    @property
    def null(self) -> Tensor:
        """Which queries attend to nothing; bool."""
        return self.nonzeros == 0


class AttentionResult(NamedTuple):
    """The output, and whatever else the call asked for."""

    output: Tensor
    """``[..., heads, queries, value dim]``"""
    weights: Tensor | None = None
    """``[..., heads, queries, keys]``; or sparse CSR, with all rows in one dimension."""
    statistics: RowStatistics | None = None


def statistics_of(weights: Tensor) -> RowStatistics:
    """The statistics of weights ``[..., heads, queries, keys]``."""
    dtype = torch.float64 if weights.dtype == torch.float64 else torch.float32
    nonzeros = (weights != 0).sum(-1, dtype=torch.int32)
    return RowStatistics(nonzeros, weights.detach().sum(-1, dtype=dtype))


def check_call(call: AttentionCall) -> None:
    """Raise ValueError, naming both values and the valid choices, if the arguments do not fit."""
    check_options(
        call.activation,
        threshold=call.threshold,
        power=call.power,
        length_exponent=call.length_exponent,
    )
    if call.enable_gqa or not _clearly_fit(call.query, call.key, call.value):
        _check_inputs(call.query, call.key, call.value)
        _check_heads(call)
    _check_threshold(call)
    _check_numbers(call)
    if call.reach is not None and call.reach.is_packed and not torch.compiler.is_compiling():
        check_starts(call.reach, call.query.size(-2), call.key.size(-2))
    if call.attn_mask is not None:
        if call.is_causal:
            raise ValueError(
                "attn_mask and is_causal=True exclude each other; put the causal pattern into the "
                "mask, or leave one of them out"
            )
        _check_mask(call.attn_mask, call.query, call.weights_shape)


def _check_numbers(call: AttentionCall) -> None:
    _check_number("dropout_p", call.dropout_p, "a number between 0 and 1")
    if not 0.0 <= call.dropout_p <= 1.0:
        raise ValueError(f"dropout_p must be between 0 and 1, got {call.dropout_p}")
    if call.scale is not None:
        advice = "; multiply the query by it instead"
        _check_number("scale", call.scale, "a number, or None for dim ** -0.5", advice)


def _check_number(name: str, value: object, wanted: str, advice: str = "") -> None:
    """Raise TypeError unless it is a number; NumPy numbers and one-element tensors count too."""
    # In this order: torch.compile cannot look up attributes of its own numbers.
    if not isinstance(value, (int, float)) and not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be {wanted}, got {value!r}")
    if isinstance(value, Tensor) and (value.requires_grad or value.numel() != 1):
        raise TypeError(
            f"{name} must be {wanted}, got a tensor of {value.numel():,} elements"
            f"{' that requires a gradient' if value.requires_grad else ''}{advice}"
        )


def _clearly_fit(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether this is the usual case, equal leading dimensions, which needs no further checks.

    It takes a fraction of the time of the checks below. The lengths of query and key are not
    compared: in an exported program that would tie them to each other.
    """
    if query.is_nested or key.is_nested or value.is_nested:
        return False
    if not query.dim() == key.dim() == value.dim() >= 2:
        return False
    *query_lead, _, query_features = query.shape  # slices of a torch.Size would take longer
    *key_lead, keys, key_features = key.shape
    *value_lead, values, _ = value.shape
    return (
        query.dtype == key.dtype == value.dtype
        and query.is_floating_point()
        and query.device == key.device == value.device
        and query_lead == key_lead == value_lead
        and query_features == key_features
        and keys == values
    )


def _check_inputs(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Raise if query, key and value, which must be tensors, do not fit together; ignores heads."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.is_nested:
            raise ValueError(f"{name} is a nested tensor; pad it and pass a mask instead")
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} must have at least 2 dimensions (positions, features), "
                f"got shape {shape_of(tensor)}"
            )
        if not tensor.is_floating_point():
            raise ValueError(
                f"{name} must be floating point (float16, bfloat16, float32 or float64), "
                f"got {tensor.dtype}"
            )
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "query, key and value must have one dtype, "
            f"got {query.dtype}, {key.dtype} and {value.dtype}"
        )
    if not query.device == key.device == value.device:
        raise ValueError(
            "query, key and value must be on one device, "
            f"got {query.device}, {key.device} and {value.device}"
        )
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "query and key must have the same number of features (last dimension), "
            f"got {query.size(-1)} and {key.size(-1)}"
        )
    if key.size(-2) != value.size(-2):
        raise ValueError(
            "key and value must have the same number of positions (second to last dimension), "
            f"got {key.size(-2)} and {value.size(-2)}"
        )


def _check_heads(call: AttentionCall) -> None:
    query, key, value = call.query, call.key, call.value
    if call.enable_gqa:
        if min(query.dim(), key.dim(), value.dim()) < 3:
            raise ValueError(
                "enable_gqa=True needs a head dimension (third to last), got shapes "
                f"{shape_of(query)}, {shape_of(key)} and {shape_of(value)}"
            )
        for name, tensor in (("key", key), ("value", value)):
            if tensor.size(-3) == 0 or query.size(-3) % tensor.size(-3) != 0:
                raise ValueError(
                    f"with enable_gqa=True the heads of {name} must divide those of query, got "
                    f"{tensor.size(-3)} and {query.size(-3)}"
                )
    for name, tensor in (("key", key), ("value", value)):
        try:
            _broadcast_lead(query, tensor, call.enable_gqa)
        except RuntimeError:
            hint = "" if call.enable_gqa else " (fewer key heads than query heads: enable_gqa=True)"
            raise ValueError(
                f"the leading dimensions of query and {name} do not broadcast, got shapes "
                f"{shape_of(query)} and {shape_of(tensor)}{hint}"
            ) from None


def _check_threshold(call: AttentionCall) -> None:
    threshold = call.threshold
    if not isinstance(threshold, Tensor):
        if not isinstance(threshold, (int, float)):
            raise TypeError(f"threshold must be a number or a tensor, got {threshold!r}")
        return
    if not threshold.is_floating_point():
        raise ValueError(f"a threshold tensor must be floating point, got {threshold.dtype}")
    check_device("threshold", threshold, call.query)
    if threshold.dim() == 0:
        return
    shape = call.weights_shape
    heads = shape[-3] if len(shape) > 2 else None
    if threshold.dim() != 1 or threshold.size(0) != heads:
        raise ValueError(
            "threshold must be a number or a tensor with one number per head, got shape "
            f"{shape_of(threshold)} for attention with "
            f"{'no head dimension' if heads is None else f'{heads} heads'}"
        )


def _check_mask(mask: Tensor, query: Tensor, weights_shape: tuple[int, ...]) -> None:
    check_tensor("attn_mask", mask)
    if mask.dtype not in (torch.bool, torch.float32, query.dtype):
        choices = dict.fromkeys([torch.bool, torch.float32, query.dtype])
        raise ValueError(
            f"attn_mask must be of dtype {' or '.join(map(str, choices))} for a query of dtype "
            f"{query.dtype}, got {mask.dtype}"
        )
    check_device("attn_mask", mask, query)
    # Compared from the last dimension backwards; a mask must not be larger than the weights.
    last = weights_shape[len(weights_shape) - mask.dim() :]
    if mask.dim() > len(weights_shape) or any(
        m not in (1, w) for m, w in zip(mask.shape, last, strict=True)
    ):
        raise ValueError(
            f"attn_mask of shape {shape_of(mask)} does not broadcast to the shape of the weights, "
            f"{tuple(weights_shape)} [..., heads, queries, keys]"
        )


def _broadcast_lead(query: Tensor, other: Tensor, enable_gqa: bool) -> tuple[int, ...]:
    """Broadcast leading dimensions (all but positions and features) of query and key or value."""
    query_lead: tuple[int, ...] = query.shape[:-2]
    lead: tuple[int, ...] = other.shape[:-2]
    if enable_gqa:
        lead = (*lead[:-1], query.size(-3))
    if query_lead == lead:  # nearly always true, and broadcast_shapes is slow
        return tuple(query_lead)
    return tuple(torch.broadcast_shapes(query_lead, lead))  # type: ignore[no-untyped-call]


def check_tensor(name: str, value: object) -> None:
    """Raise TypeError for anything but a tensor, for example a list or an array."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}")


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """The shape in the form that error messages show."""
    return tuple(tensor.shape)


def check_device(name: str, tensor: Tensor, query: Tensor) -> None:
    """Raise ValueError if the tensor is not on the query's device."""
    if tensor.device != query.device:
        raise ValueError(
            f"{name} is on {tensor.device} and query on {query.device}; move it with "
            f"{name}.to({str(query.device)!r})"
        )

"""Which keys a query sees by its position: causality, windows and packed sequences.

None of these needs a mask in memory: the kernels compute them from a few numbers per query.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

Window: TypeAlias = int | tuple[int | None, int | None] | None
"""How far a query sees. A number w: keys at distances below w, which are w keys if causal. Two
numbers: that many keys before the one at its position, and that many after. None: no limit."""

Alignment: TypeAlias = Literal["upper_left", "lower_right"]
"""Aligns the first key with the first query, or the last key with the last query."""

SequenceStarts: TypeAlias = Tensor | Sequence[Tensor] | None
"""Where each of several packed sequences begins, and where the last one ends; one tensor for both
queries and keys, or one for each."""

UNLIMITED: Final = -1


class Reach(NamedTuple):
    """Which keys a query sees by its position. The extension reads these fields by index."""

    before: int = UNLIMITED
    """How many keys a query sees before the one at its position."""
    after: int = UNLIMITED
    is_lower_right: bool = False
    query_starts: Tensor | None = None
    """int64 ``[sequences + 1]``, on the CPU."""
    key_starts: Tensor | None = None

    @property
    def is_packed(self) -> bool:
        return self.query_starts is not None

    def visible(self, queries: int, keys: int, device: torch.device) -> Tensor:
        """``[queries, keys]``, True = attend."""
        query_places = torch.arange(queries, device=device)
        key_places = torch.arange(keys, device=device)
        shift: int | Tensor = keys - queries if self.is_lower_right else 0
        visible = torch.ones(queries, keys, dtype=torch.bool, device=device)
        if self.query_starts is not None and self.key_starts is not None:
            query_starts, key_starts = self.query_starts.to(device), self.key_starts.to(device)
            # The last sequence that starts at or before a position; empty sequences precede it.
            of_query = torch.searchsorted(query_starts, query_places, right=True) - 1
            of_key = torch.searchsorted(key_starts, key_places, right=True) - 1
            visible = of_query[:, None] == of_key
            query_places = query_places - query_starts[of_query]
            key_places = key_places - key_starts[of_key]
            if self.is_lower_right:
                shift = (key_starts.diff() - query_starts.diff())[of_query]
        distance = key_places - (query_places + shift)[:, None]
        if self.before != UNLIMITED:
            visible = visible & (distance >= -self.before)
        if self.after != UNLIMITED:
            visible = visible & (distance <= self.after)
        return visible


def reach_of(
    *, is_causal: bool, window: Window, align: Alignment, starts: SequenceStarts
) -> Reach | None:
    """The arguments as a `Reach`; None if ``is_causal`` says it all. ValueError if one is wrong."""
    if align not in ("upper_left", "lower_right"):
        raise ValueError(f"align must be 'upper_left' or 'lower_right', got {align!r}")
    if window is None and align == "upper_left" and starts is None:
        return None
    before, after = _distances(window)
    if is_causal:
        after = 0
    query_starts, key_starts = _pair(starts)
    return Reach(before, after, align == "lower_right", query_starts, key_starts)


def check_starts(reach: Reach, queries: int, keys: int) -> None:
    """Raise ValueError if starts do not fit the numbers of positions. Reads the tensors' values."""
    if reach.query_starts is None or reach.key_starts is None:
        return
    counts = {"queries": queries, "keys": keys}
    numbers = [reach.query_starts.tolist(), reach.key_starts.tolist()]
    for starts, (name, count) in zip(numbers, counts.items(), strict=True):
        if not starts or starts[0] != 0 or starts[-1] != count or starts != sorted(starts):
            raise ValueError(
                f"sequence_starts of {name} must ascend from 0 to the number of {name}, {count}; "
                f"got {_shortened(starts)}"
            )
    if len(numbers[0]) != len(numbers[1]):
        raise ValueError(
            "sequence_starts must name as many sequences of queries as of keys, got "
            f"{len(numbers[0]) - 1} and {len(numbers[1]) - 1}"
        )


def _distances(window: Window) -> tuple[int, int]:
    """How far a query sees to either side."""
    if window is None:
        return UNLIMITED, UNLIMITED
    if isinstance(window, int) and not isinstance(window, bool):
        if window < 1:
            raise ValueError(f"window must be at least 1, got {window}")
        return window - 1, window - 1
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        raise ValueError(
            "window must be a whole number, or two of them (keys before and after a query's own), "
            f"got {window!r}"
        )
    for side in window:
        is_whole = isinstance(side, int) and not isinstance(side, bool)
        if side is not None and not (is_whole and side >= 0):
            raise ValueError(
                "the two numbers of a window must be whole and at least 0, or None for no limit, "
                f"got {window!r}"
            )
    before, after = (UNLIMITED if side is None else int(side) for side in window)
    return before, after


def _pair(starts: SequenceStarts) -> tuple[Tensor | None, Tensor | None]:
    """The starts of queries and keys, in the form that the extension reads."""
    if starts is None:
        return None, None
    both = [starts, starts] if isinstance(starts, Tensor) else list(starts)
    if len(both) != 2:
        raise ValueError(
            "sequence_starts must be one tensor, or one for queries and one for keys, got "
            f"{len(both)}"
        )
    for tensor in both:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"sequence_starts must be a tensor or two, got {tensor!r}")
        if tensor.dim() != 1 or tensor.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                "sequence_starts must be of dtype torch.int64 or torch.int32 and shape "
                f"[sequences + 1], got {tensor.dtype} and {tuple(tensor.shape)}"
            )
    # Copies: backward reads them again, and by then the caller may have changed the originals.
    query_starts, key_starts = (tensor.to("cpu", torch.int64, copy=True) for tensor in both)
    return query_starts, key_starts


def _shortened(starts: list[int]) -> str:
    shown = ", ".join(map(str, starts[:8]))
    return f"[{shown}{', ...' if len(starts) > 8 else ''}]"

"""`KeyValueCache`: the keys and values of all positions so far, for generating token by token."""

from typing import Final

import torch
from torch import Tensor

FIRST_CAPACITY: Final = 64


class KeyValueCache:
    """Keys and values of one attention layer; every step appends its own.

    The cache allocates room in advance: appending writes the new positions and copies none of the
    old ones, except when the room is used up and doubles. The kernels read its memory directly.

    `MultiheadAttention` takes a cache as ``cache=``. With `relakit.attention`, use it like this::

        key, value = cache.append(key, value)  # all of them so far
        output = relakit.attention(query, key, value, is_causal=True, align="lower_right")

    A cache is for inference: what is appended must not need gradients. Sequences of different
    lengths can share a cache if they are padded on the left and the padding is masked.

    Args:
        capacity: how many positions to allocate at first, if you know how many there will be.
    """

    def __init__(self, capacity: int | None = None) -> None:
        if capacity is not None and capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self._capacity = capacity
        self._rooms: tuple[Tensor, Tensor] | None = None
        self._positions = -2
        self._length = 0

    def __len__(self) -> int:
        """How many positions it holds."""
        return self._length

    @property
    def capacity(self) -> int:
        """How many positions there is room for."""
        return 0 if self._rooms is None else self._rooms[0].size(self._positions)

    def append(self, key: Tensor, value: Tensor, *, positions: int = -2) -> tuple[Tensor, Tensor]:
        """Append positions; returns all keys and values so far, as views.

        Args:
            key: ``[batch, heads, positions, dim]``, or ``[batch, positions, features]``: the batch
                comes first, unless ``positions`` is 0. There may be fewer heads than the queries
                have.
            value: the same with the values' features.
            positions: which dimension holds the positions.
        """
        dim = positions % key.dim()
        self._check(key, value, dim)
        end = self._length + key.size(dim)
        if self._rooms is None or end > self.capacity:
            self._grow(key, value, dim, end)
        assert self._rooms is not None
        for room, new in zip(self._rooms, (key, value), strict=True):
            room.narrow(dim, self._length, new.size(dim)).copy_(new)
        self._length = end
        return self._views()

    def reorder(self, sequences: Tensor) -> None:
        """Continue with these sequences of the batch, in this order; they may repeat or be dropped.

        A beam search passes, for each beam, the index of the sequence that it continues. The
        positions so far are copied; the unused room is not.
        """
        if self._rooms is None:
            return
        key, value = self._views()
        batch = 1 if self._positions == 0 else 0
        chosen = [x.index_select(batch, sequences.to(x.device)) for x in (key, value)]
        rooms = []
        for room, kept in zip(self._rooms, chosen, strict=True):
            if room.size(batch) != kept.size(batch):
                shape = list(kept.shape)
                shape[self._positions] = self.capacity
                room = room.new_empty(shape)
            room.narrow(self._positions, 0, self._length).copy_(kept)
            rooms.append(room)
        self._rooms = (rooms[0], rooms[1])

    def truncate(self, length: int) -> None:
        """Forget all positions from ``length`` on, for example those of a rejected draft."""
        if not 0 <= length <= self._length:
            raise ValueError(f"length must be between 0 and {self._length}, got {length}")
        self._length = length

    def _views(self) -> tuple[Tensor, Tensor]:
        assert self._rooms is not None
        key, value = (room.narrow(self._positions, 0, self._length) for room in self._rooms)
        return key, value

    def _grow(self, key: Tensor, value: Tensor, dim: int, needed: int) -> None:
        first = self._capacity or FIRST_CAPACITY
        capacity = max(needed, first if self._rooms is None else 2 * self.capacity)
        old = self._views() if self._rooms is not None else None
        rooms = []
        for i, new in enumerate((key, value)):
            shape = list(new.shape)
            shape[dim] = capacity
            room = new.new_empty(shape)
            if old is not None:
                room.narrow(dim, 0, self._length).copy_(old[i])
            rooms.append(room)
        self._positions = dim
        self._rooms = (rooms[0], rooms[1])

    def _check(self, key: Tensor, value: Tensor, dim: int) -> None:
        if torch.is_grad_enabled() and (key.requires_grad or value.requires_grad):
            raise ValueError(
                "a cache is for inference, and these keys or values need gradients; call the model "
                "inside torch.no_grad(), or without a cache"
            )
        if key.size(dim) != value.size(dim):
            raise ValueError(
                "key and value must have the same number of positions, got "
                f"{key.size(dim)} and {value.size(dim)}"
            )
        if self._rooms is None:
            return
        for name, room, new in zip(("key", "value"), self._rooms, (key, value), strict=True):
            fits = new.dim() == room.dim() and dim == self._positions
            wanted, given = list(room.shape), list(new.shape)
            if fits:
                wanted[dim] = given[dim] = 0
            if wanted != given or new.dtype != room.dtype or new.device != room.device:
                raise ValueError(
                    f"{name} must be like those in the cache, but for the positions: got "
                    f"{tuple(new.shape)} {new.dtype} on {new.device}, and the cache has room for "
                    f"{tuple(room.shape)} {room.dtype} on {room.device}"
                )

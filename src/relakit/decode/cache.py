"""What a search keeps of earlier steps, so that a step costs the same however far it has come.

Keys and values of a step are appended and never moved. Beams that branch or end only change which
rows a beam may see: a small boolean mask, kept up to date by `DecoderCache.reorder`.
"""

from typing import NamedTuple

import torch
from torch import Tensor

FIRST_CAPACITY = 32
"""Steps that there is memory for at first; it doubles when they are used up."""


class CrossRows(NamedTuple):
    """A layer's keys and values of the source, once for all beams of a sentence."""

    key: Tensor
    """``[batch, heads, source, head]``"""
    value: Tensor
    """``[batch, heads, source, head]``"""


class DecoderCache:
    """Keys and values of all layers, for ``batch`` sentences with ``beams`` hypotheses each.

    A step writes one row for every beam of a sentence: row ``step * beams + beam``.
    """

    def __init__(
        self,
        cross: list[CrossRows],
        cross_mask: Tensor | None,
        *,
        batch: int,
        beams: int,
        width: int,
        dtype: torch.dtype,
    ) -> None:
        """``width`` and ``dtype`` are those of the rows of self-attention, keys beside values."""
        self.cross = cross
        self.cross_mask = cross_mask
        self.batch = batch
        self.beams = beams
        self.steps = 0
        device = cross[0].key.device
        rows = FIRST_CAPACITY * beams
        self._rows = [torch.empty(batch, rows, width, dtype=dtype, device=device) for _ in cross]
        # With one beam everything that was written is an ancestor.
        self._ancestors: Tensor | None = None
        if beams > 1:
            self._ancestors = torch.zeros(batch, beams, rows, dtype=torch.bool, device=device)
            self._itself = torch.eye(beams, dtype=torch.bool, device=device)
            self._first_beam = torch.arange(0, batch * beams, beams, device=device)[:, None]

    def begin_step(self) -> None:
        """Make room for the rows of another step, each of which its own beam may see."""
        first = self.steps * self.beams
        if first == self._rows[0].size(1):
            self._rows = [_doubled(rows) for rows in self._rows]
            if self._ancestors is not None:
                unseen = torch.zeros_like(self._ancestors)
                self._ancestors = torch.cat([self._ancestors, unseen], dim=2)
        if self._ancestors is not None:
            self._ancestors[:, :, first : first + self.beams] = self._itself
        self.steps += 1

    def append(self, layer: int, rows: Tensor) -> Tensor:
        """Add a step's ``[batch, beams, width]`` to a layer; returns all its rows."""
        end = self.steps * self.beams
        buffer = self._rows[layer]
        buffer[:, end - self.beams : end].copy_(rows)
        return buffer[:, :end]

    def mask(self) -> Tensor | None:
        """Which rows a beam descends from: ``[batch, 1, beams, rows]``; None: from all of them."""
        if self._ancestors is None:
            return None
        return self._ancestors[:, None, :, : self.steps * self.beams]

    def reorder(self, parents: Tensor) -> None:
        """Let every beam go on from where another one is: ``[batch, beams]`` numbers of beams."""
        if self._ancestors is not None:
            rows = (parents + self._first_beam).view(-1)
            chosen = self._ancestors.view(self.batch * self.beams, -1).index_select(0, rows)
            self._ancestors = chosen.view(self._ancestors.shape)

    def keep(self, sentences: Tensor) -> None:
        """Drop all sentences but those at these indices."""
        self.batch = sentences.numel()
        self._rows = [rows.index_select(0, sentences) for rows in self._rows]
        self.cross = [
            CrossRows(key.index_select(0, sentences), value.index_select(0, sentences))
            for key, value in self.cross
        ]
        if self.cross_mask is not None:
            self.cross_mask = self.cross_mask.index_select(0, sentences)
        if self._ancestors is not None:
            self._ancestors = self._ancestors.index_select(0, sentences)
            self._first_beam = self._first_beam[: self.batch]


def _doubled(rows: Tensor) -> Tensor:
    batch, count, width = rows.shape
    larger = rows.new_empty(batch, 2 * count, width)
    larger[:, :count] = rows
    return larger

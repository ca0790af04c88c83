"""What a search keeps from earlier steps, so that no step computes them again.

Keys and values of a step are appended and never moved. Beams that branch or end only change which
rows a beam may see: a small boolean mask, kept up to date by `DecoderCache.reorder`.
"""

import torch
from torch import Tensor

FIRST_CAPACITY = 32
"""How many steps there is memory for at first; it doubles when they are used up."""


class DecoderCache:
    """Keys beside values of all layers, for ``batch`` sentences with ``beams`` hypotheses each.

    A step writes one row for every beam of a sentence: row ``step * beams + beam``. The rows of the
    source are there from the start, once for all beams of a sentence.
    """

    def __init__(
        self,
        source: list[Tensor],
        source_mask: Tensor | None,
        *,
        beams: int,
        target_dtype: torch.dtype,
    ) -> None:
        """``source``: rows ``[batch, source, width]`` of each layer; the target's are as wide."""
        self.source = source
        self.source_mask = source_mask
        self.batch, _, width = source[0].shape
        self.beams = beams
        self.steps = 0
        device = source[0].device
        rows = FIRST_CAPACITY * beams
        self._target = [
            torch.empty(self.batch, rows, width, dtype=target_dtype, device=device) for _ in source
        ]
        # With one beam everything that was written is an ancestor.
        self._ancestors: Tensor | None = None
        if beams > 1:
            self._ancestors = torch.zeros(self.batch, beams, rows, dtype=torch.bool, device=device)
            self._itself = torch.eye(beams, dtype=torch.bool, device=device)
            self._first_beam = torch.arange(0, self.batch * beams, beams, device=device)[:, None]

    def begin_step(self) -> Tensor | None:
        """Make room for the rows of another step; each beam may see its own row.

        Returns:
            Which rows each beam descends from: ``[batch, 1, beams, rows]``; None for all of them.
        """
        first = self.steps * self.beams
        if first == self._target[0].size(1):
            self._target = [_doubled(rows) for rows in self._target]
            if self._ancestors is not None:
                unseen = torch.zeros_like(self._ancestors)
                self._ancestors = torch.cat([self._ancestors, unseen], dim=2)
        self.steps += 1
        if self._ancestors is None:
            return None
        end = first + self.beams
        self._ancestors[:, :, first:end] = self._itself
        return self._ancestors[:, None, :, :end]

    def append(self, layer: int, rows: Tensor) -> Tensor:
        """Add a step's ``[batch * beams, width]`` to a layer; returns ``[batch, rows, width]``."""
        end = self.steps * self.beams
        buffer = self._target[layer]
        buffer[:, end - self.beams : end].copy_(rows.view(self.batch, self.beams, -1))
        return buffer[:, :end]

    def reorder(self, parents: Tensor) -> None:
        """Make every beam continue the one with the given number: ``[batch, beams]``."""
        if self._ancestors is not None:
            rows = (parents + self._first_beam).view(-1)
            chosen = self._ancestors.view(self.batch * self.beams, -1).index_select(0, rows)
            self._ancestors = chosen.view(self._ancestors.shape)

    def keep(self, sentences: Tensor) -> None:
        """Drop all sentences but those at these indices."""
        self.batch = sentences.numel()
        self._target = [rows.index_select(0, sentences) for rows in self._target]
        self.source = [rows.index_select(0, sentences) for rows in self.source]
        if self.source_mask is not None:
            self.source_mask = self.source_mask.index_select(0, sentences)
        if self._ancestors is not None:
            self._ancestors = self._ancestors.index_select(0, sentences)
            self._first_beam = self._first_beam[: self.batch]


def _doubled(rows: Tensor) -> Tensor:
    batch, count, width = rows.shape
    larger = rows.new_empty(batch, 2 * count, width)
    larger[:, :count] = rows
    return larger

"""From token ids to what encoder and decoder read, and the position vectors."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relakit.data.prepared_format import Side
from relakit.data.tokenizer import BEGIN
from relakit.model.config import ModelConfig, Timescales
from relakit.model.dropout import Dropout


class Embedding(nn.Module):
    """Token embeddings times sqrt(dim), plus a bias if there is one, plus sinusoidal positions."""

    positions: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.vocabulary, config.dim))
        """The matrix of the target and of the output layer."""
        self.source_weight: nn.Parameter | None = None
        if config.source_embedding == "separate":
            self.source_weight = nn.Parameter(torch.empty(config.source_entries, config.dim))
        self.bias: nn.Parameter | None = None
        if config.embedding_bias:
            self.bias = nn.Parameter(torch.empty(config.dim))
        self.starts_with_zeros = config.first_input == "zeros"
        self.timescales = config.timescales
        self.scale = math.sqrt(config.dim)
        self.dropout = Dropout(config.dropout)
        # Not saved, as it can be computed; it grows with the longest sentence.
        self.register_buffer("positions", None, persistent=False)
        self.reset_positions()

    def reset_parameters(self) -> None:
        """Reinitialise: normal matrices (dim^-0.5), a bias that is uniform within sqrt(3 / dim)."""
        dim = self.weight.size(1)
        for matrix in (self.weight, self.source_weight):
            if matrix is not None:
                nn.init.normal_(matrix, std=dim**-0.5)
        if self.bias is not None:
            bound = math.sqrt(3 / dim)
            nn.init.uniform_(self.bias, -bound, bound)

    def reset_positions(self) -> None:
        """Compute the position vectors, on the device of the weights."""
        vectors = sinusoids(256, self.weight.size(1), self.timescales)
        self.positions = vectors.to(self.weight.device)

    def forward(self, tokens: Tensor, *, side: Side) -> Tensor:
        """Embed ``[batch, positions]`` ids: ``[batch, positions, dim]``."""
        embedded = self.without_positions(tokens, side=side)
        embedded = embedded + self.position_vectors(tokens.size(1))
        dropped: Tensor = self.dropout(embedded)
        return dropped

    def at(self, position: int, tokens: Tensor) -> Tensor:
        """Embed target ids ``[...]`` that are all at one position, without dropout."""
        vector = self.position_vectors(position + 1)[position]
        return self.without_positions(tokens, side="target") + vector

    def without_positions(self, tokens: Tensor, *, side: Side) -> Tensor:
        """Embed ids ``[...]`` without their positions: ``[..., dim]``.

        With ``first_input = "zeros"`` the begin-of-sentence token gives zeros, without even the
        bias; its position is added to them as to all others.
        """
        matrix = self.weight
        if side == "source" and self.source_weight is not None:
            matrix = self.source_weight
        embedded = F.embedding(tokens, matrix) * self.scale
        if self.bias is not None:
            embedded = embedded + self.bias
        if self.starts_with_zeros:
            embedded = embedded.masked_fill((tokens == BEGIN)[..., None], 0.0)
        return embedded

    def position_vectors(self, count: int) -> Tensor:
        """The vectors of the first ``count`` positions: ``[count, dim]``."""
        if count > self.positions.size(0):
            longer = sinusoids(2 * count, self.positions.size(1), self.timescales)
            self.positions = longer.to(self.positions)
        return self.positions[:count]


def sinusoids(count: int, dim: int, timescales: Timescales) -> Tensor:
    """Position vectors ``[count, dim]``: sines in the first half of the features, then cosines."""
    steps = dim // 2
    # The slowest sine of Vaswani et al. stays just short of 10,000; tensor2tensor's gets there.
    last = max(steps - 1, 1) if timescales == "tensor2tensor" else steps
    frequencies = 10000.0 ** (torch.arange(steps, dtype=torch.float64) / -last)
    angles = torch.arange(count, dtype=torch.float64)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()

"""The encoder-decoder Transformer of the paper, with a choice of attention for each of its uses.

Post-norm by default, ReLU feed-forward layers, one embedding matrix for target and output, and by
default for the source too. Shapes in comments: ``batch``, ``source`` and ``target`` positions,
``dim`` features, ``heads``, ``head`` features of one head.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relakit.attention_kinds import AttentionKind
from relakit.data.tokenizer import PAD
from relakit.model.config import ModelConfig
from relakit.model.decoder_cache import DecoderCache
from relakit.model.dropout import Dropout
from relakit.model.embedding import Embedding
from relakit.nn.fused import attend_and_normalise
from relakit.nn.norms import build_norm
from relakit.nn.threshold import build_threshold, current_threshold
from relakit.ops.precision import without_autocast


class Memory(NamedTuple):
    """What the encoder hands to the decoder."""

    states: Tensor
    """``[batch, source, dim]``"""
    mask: Tensor | None
    """``[batch, 1, 1, source]``, True for words, False for padding; None if there is no padding"""


class Transformer(nn.Module):
    """Encoder and decoder over one shared vocabulary, or one per language.

    ``model(source, target)`` gives the decoder's states, ``model.logits(states)`` the scores of
    every next token. Loss and search call them separately, so neither holds all logits at once.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialise: Xavier's uniform matrices, zero biases; embeddings in their own way."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                # Keys and values share a matrix, but start as two matrices would.
                for part in module.weight.chunk(2 if name.endswith("key_value") else 1):
                    nn.init.xavier_uniform_(part)
                nn.init.zeros_(module.bias)
        if self.config.self_attention_init == "joint":
            for module in self.modules():
                if isinstance(module, Attention) and module.kind != "cross":
                    module.draw_jointly()
        self.embedding.reset_parameters()

    def encode(self, source: Tensor) -> Memory:
        """Encode ``[batch, source]`` token ids, each sentence with its end-of-sentence token."""
        mask = source != PAD
        # Sentences of one length need no mask, and attention is faster without one. On a GPU,
        # finding out would make the host wait.
        is_padded = source.is_cuda or not bool(mask.all())
        attention_mask = mask[:, None, None, :] if is_padded else None
        embedded = self.embedding(source, side="source")
        return Memory(self.encoder(embedded, attention_mask), attention_mask)

    def decode(self, target: Tensor, memory: Memory, *, layers: int | None = None) -> Tensor:
        """The states ``[batch, target, dim]`` after each of ``[batch, target]`` input tokens.

        ``layers``: run only this many of the decoder's first layers, to observe those.
        """
        states: Tensor = self.decoder(self.embedding(target, side="target"), memory, layers)
        return states

    def decoder_states(self, target: Tensor, memory: Memory) -> list[Tensor]:
        """What the decoder's layers read and write: the embedded input, then each layer's output.

        Each is ``[batch, target, dim]``; the norm at the end of a pre-norm stack is left out.
        """
        states = [self.embedding(target, side="target")]
        for layer in self.decoder.layers:
            states.append(layer(states[-1], memory))
        return states

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """`encode`, then `decode`: ``[batch, target, dim]``."""
        return self.decode(target, self.encode(source))

    def logits(self, states: Tensor) -> Tensor:
        """From states ``[..., dim]`` to scores ``[..., vocabulary]``."""
        return F.linear(states, self.embedding.weight)


class Encoder(nn.Module):
    """Layers of self-attention and feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.norm = layer_norm(config) if config.norm_first else None

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """``[batch, source, dim]`` to the same shape."""
        for layer in self.layers:
            x = layer(x, mask)
        return x if self.norm is None else self.norm(x)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with a residual connection and a LayerNorm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = Attention(config, "encoder")
        self.attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """``[batch, source, dim]`` to the same shape."""
        y = self.attention_residual.before(x)
        x = self.attention_residual(x, self.attention(y, y, mask))
        y = self.feed_forward_residual.before(x)
        return self.feed_forward_residual(x, self.feed_forward(y))  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """Layers of causal self-attention, cross-attention to the encoder, and feed-forward.

    `forward` reads whole sentences. `start` and `step` read them one token at a time, with what
    came before in a cache, and give the same states.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = layer_norm(config) if config.norm_first else None

    def forward(self, x: Tensor, memory: Memory, layers: int | None = None) -> Tensor:
        """``[batch, target, dim]`` to the same shape, by all layers or by the first ``layers``."""
        for layer in self.layers[:layers]:
            x = layer(x, memory)
        return self.finish(x)

    def finish(self, x: Tensor) -> Tensor:
        """Apply the norm at the end of a pre-norm stack; other stacks have none."""
        return x if self.norm is None else self.norm(x)

    def start(self, memory: Memory, beams: int) -> DecoderCache:
        """A cache for ``beams`` hypotheses of each sentence that the encoder has read."""
        layers = [layer for layer in self.layers if isinstance(layer, DecoderLayer)]
        return DecoderCache(
            [layer.cross_attention.keys_beside_values(memory.states) for layer in layers],
            memory.mask,
            beams=beams,
            target_dtype=layers[0].attention.mixing_dtype(memory.states),
        )

    def step(self, x: Tensor, cache: DecoderCache) -> Tensor:
        """Read another token of each beam: ``[rows, dim]`` to the same shape."""
        mask = cache.begin_step()
        for index, layer in enumerate(self.layers):
            assert isinstance(layer, DecoderLayer)
            x = layer.step(x, index, cache, mask)
        return self.finish(x)


class DecoderLayer(nn.Module):
    """The decoder's three sublayers, each with a residual connection and a LayerNorm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = Attention(config, "decoder")
        self.attention_residual = Residual(config)
        self.cross_attention = Attention(config, "cross")
        self.cross_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        """``[batch, target, dim]`` to the same shape."""
        return self._sublayers(
            x,
            lambda y: self.attention(y, y),
            lambda y: self.cross_attention(y, memory.states, memory.mask),
        )

    def step(self, x: Tensor, index: int, cache: DecoderCache, mask: Tensor | None) -> Tensor:
        """Read another token of each beam; the beams of a sentence are queries side by side.

        Args:
            x: ``[rows, dim]``.
            index: which of the decoder's layers this is.
            cache: gets this layer's new keys and values.
            mask: which rows of the cache each beam may see.
        """
        attention, cross_attention = self.attention, self.cross_attention
        return self._sublayers(
            x,
            lambda y: attention.mix(y, cache.append(index, attention.key_value(y)), mask),
            lambda y: cross_attention.mix(y, cache.source[index], cache.source_mask),
        )

    def _sublayers(
        self,
        x: Tensor,
        attend_to_target: Callable[[Tensor], Tensor],
        attend_to_source: Callable[[Tensor], Tensor],
    ) -> Tensor:
        y = self.attention_residual.before(x)
        x = self.attention_residual(x, attend_to_target(y))
        y = self.cross_attention_residual.before(x)
        x = self.cross_attention_residual(x, attend_to_source(y))
        y = self.feed_forward_residual.before(x)
        return self.feed_forward_residual(x, self.feed_forward(y))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """Adds a sublayer's output to its input; LayerNorm after the sum, or before the sublayer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = layer_norm(config)
        self.dropout = Dropout(config.dropout)
        self.norm_first = config.norm_first

    def before(self, x: Tensor) -> Tensor:
        """The sublayer's input."""
        return self.norm(x) if self.norm_first else x

    def forward(self, x: Tensor, added: Tensor) -> Tensor:
        """The sum of the sublayer's input and output."""
        x = x + self.dropout(added)
        return x if self.norm_first else self.norm(x)


def layer_norm(config: ModelConfig) -> nn.LayerNorm:
    """The LayerNorm of a residual connection, or at the end of a pre-norm stack."""
    return nn.LayerNorm(config.dim, eps=config.norm_eps)


class FeedForward(nn.Module):
    """Two linear layers with a ReLU in between."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.dim, config.feed_forward)
        self.outer = nn.Linear(config.feed_forward, config.dim)
        self.dropout = Dropout(config.feed_forward_dropout)

    def forward(self, x: Tensor) -> Tensor:
        """``[..., dim]`` to the same shape."""
        y: Tensor = self.outer(self.dropout(F.relu(self.inner(x))))
        return y


class Attention(nn.Module):
    """Multi-head attention of one kind."""

    def __init__(self, config: ModelConfig, kind: AttentionKind) -> None:
        super().__init__()
        self.kind = kind
        self.heads = config.heads
        self.dropout = config.attention_dropout
        self.spec = config.attention_spec(kind)
        self.query = nn.Linear(config.dim, config.dim)
        self.key_value = nn.Linear(config.dim, 2 * config.dim)
        self.threshold = build_threshold(self.spec, config.heads)
        self.norm = build_norm(self.spec, config.dim, config.dim // config.heads)
        self.output = nn.Linear(config.dim, config.dim)

    def draw_jointly(self) -> None:
        """Draw query, key and value as Xavier would draw one matrix ``[dim, 3 * dim]``.

        That is uniform within ``sqrt(3 / (2 * dim))``, narrower than three matrices by sqrt(2).
        """
        bound = math.sqrt(3 / (2 * self.query.in_features))
        for layer in (self.query, self.key_value):
            nn.init.uniform_(layer.weight, -bound, bound)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend from ``x`` to ``memory``; in the decoder's self-attention, to what came before.

        Args:
            x: ``[batch, queries, dim]``.
            memory: ``[batch, keys, dim]``; ``x`` itself in self-attention.
            mask: broadcasts to ``[batch, heads, queries, keys]``; True = attend.
        """
        return self.mix(x, self.key_value(memory), mask, is_causal=self.kind == "decoder")

    def keys_beside_values(self, memory: Tensor) -> Tensor:
        """What a search keeps from ``[batch, keys, dim]`` for `mix`: ``[batch, keys, 2 * dim]``."""
        rows: Tensor = self.key_value(memory)
        return rows.to(self.mixing_dtype(memory))

    def mixing_dtype(self, x: Tensor) -> torch.dtype:
        """The dtype that attention computes in, for states in the dtype of ``x``."""
        # PyTorch's softmax attention is slow in bfloat16 on a CPU, especially its backward pass.
        is_slow = x.dtype == torch.bfloat16 and x.device.type == "cpu"
        return torch.float32 if is_slow and self.spec.activation == "softmax" else x.dtype

    def mix(
        self, x: Tensor, rows: Tensor, mask: Tensor | None, *, is_causal: bool = False
    ) -> Tensor:
        """Attend from ``x`` to keys and values; returns the shape of ``x``.

        Args:
            x: ``[batch, queries, dim]``, or ``[batch * queries, dim]``.
            rows: keys beside values, ``[batch, keys, 2 * dim]``.
            mask: broadcasts to ``[batch, heads, queries, keys]``; True = attend.
            is_causal: attend only to what came before.
        """
        query: Tensor = self.query(x)
        dtype, mixing_dtype = query.dtype, self.mixing_dtype(query)
        query = query.view(rows.size(0), -1, query.size(-1))
        if mixing_dtype != dtype:
            query, rows = query.to(mixing_dtype), rows.to(mixing_dtype)
        with without_autocast(query):
            mixed, _ = attend_and_normalise(
                (query, rows),
                heads=self.heads,
                attn_mask=mask,
                dropout_p=self.dropout if self.training else 0.0,
                is_causal=is_causal,
                spec=self.spec,
                threshold=current_threshold(self.spec, self.threshold),
                norm=self.norm,
            )
        output: Tensor = self.output(mixed.to(dtype).view(x.shape))
        return output

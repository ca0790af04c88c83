"""The decoder one position at a time: `Transformer.decode`, with what came before in a cache.

Shapes in comments: ``batch`` sentences, ``beams`` of each, ``rows`` = batch * beams, ``dim``.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relakit.decode.cache import CrossRows, DecoderCache
from relakit.model import Memory, Transformer
from relakit.model.transformer import Attention, DecoderLayer, Residual
from relakit.ops.attention import attention as attend


class IncrementalDecoder:
    """Runs a model's decoder step by step, without gradients.

    It copies the decoder's weights when it is made, joined and laid out for few rows, so make a new
    one when they have changed. The state of a search is in its `DecoderCache`: one decoder serves
    many searches.
    """

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self._layers = [
            _Layer(index, layer)
            for index, layer in enumerate(model.decoder.layers)
            if isinstance(layer, DecoderLayer)
        ]
        self._norm = None if model.decoder.norm is None else _LayerNorm.of(model.decoder.norm)

    def start(self, memory: Memory, beams: int) -> DecoderCache:
        """A cache for ``beams`` hypotheses of each sentence that the encoder has read."""
        return DecoderCache(
            [layer.cross_rows(memory.states) for layer in self._layers],
            memory.mask,
            batch=memory.states.size(0),
            beams=beams,
            width=2 * self.model.config.dim,
            dtype=self._layers[0].cache_dtype(memory.states),
        )

    def step(self, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """The states ``[rows, dim]`` after another token ``[rows]`` of each beam."""
        embedding = self.model.embedding
        position = embedding.position_vectors(cache.steps + 1)[cache.steps]
        x = torch.add(position, F.embedding(tokens, embedding.weight), alpha=embedding.scale)
        cache.begin_step()
        mask = cache.mask()
        for layer in self._layers:
            x = layer.step(x, cache, mask)
        return x if self._norm is None else self._norm(x)


class _Linear(NamedTuple):
    """Linear layers with the same input, as one."""

    weight: Tensor
    """``[inputs, outputs]``: BLAS is up to 1.5 times as fast so, where rows are few."""
    bias: Tensor

    @classmethod
    def of(cls, *layers: nn.Linear) -> "_Linear":
        weight = torch.cat([layer.weight.detach() for layer in layers])
        return cls(weight.t().contiguous(), torch.cat([layer.bias.detach() for layer in layers]))

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


class _LayerNorm(NamedTuple):
    shape: list[int]
    weight: Tensor
    bias: Tensor
    eps: float

    @classmethod
    def of(cls, norm: nn.LayerNorm) -> "_LayerNorm":
        return cls(list(norm.normalized_shape), norm.weight.detach(), norm.bias.detach(), norm.eps)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


class _Layer:
    """A decoder layer."""

    def __init__(self, index: int, layer: DecoderLayer) -> None:
        self.index = index
        self.heads = layer.attention.heads
        self.attention = layer.attention
        self.cross_attention = layer.cross_attention
        self.mix_target = _Mix(layer.attention)
        self.mix_source = _Mix(layer.cross_attention)
        self.target_rows = _Linear.of(layer.attention.query, layer.attention.key_value)
        self.source_query = _Linear.of(layer.cross_attention.query)
        self.inner = _Linear.of(layer.feed_forward.inner)
        self.outer = _Linear.of(layer.feed_forward.outer)
        self.after_target = _Sum(layer.attention_residual)
        self.after_source = _Sum(layer.cross_attention_residual)
        self.after_feed_forward = _Sum(layer.feed_forward_residual)

    def cache_dtype(self, states: Tensor) -> torch.dtype:
        """Of the keys and values of self-attention."""
        return _key_dtype(self.attention, states)

    def cross_rows(self, states: Tensor) -> CrossRows:
        """Keys and values of the encoder's states ``[batch, source, dim]``."""
        dtype = _key_dtype(self.cross_attention, states)
        key, value = self.cross_attention.keys_and_values(states)
        return CrossRows(key.to(dtype), value.to(dtype))

    def step(self, x: Tensor, cache: DecoderCache, mask: Tensor | None) -> Tensor:
        """``[rows, dim]`` to the same shape; the layer's new rows go to the cache."""
        y = self.after_target.before(x)
        x = self.after_target(x, self._attend_to_target(y, cache, mask))
        y = self.after_source.before(x)
        x = self.after_source(x, self._attend_to_source(y, cache))
        y = self.after_feed_forward.before(x)
        return self.after_feed_forward(x, self.outer(self.inner(y).relu_()))

    def _attend_to_target(self, x: Tensor, cache: DecoderCache, mask: Tensor | None) -> Tensor:
        batch, beams, dim, heads = cache.batch, cache.beams, x.size(1), self.heads
        head = dim // heads
        joined = self.target_rows(x).view(batch, beams, 3 * dim)
        seen = cache.append(self.index, joined[:, :, dim:])
        sentence, row, _ = seen.stride()
        size, stride = (batch, heads, seen.size(1), head), (sentence, head, row, 1)
        key = seen.as_strided(size, stride)
        value = seen.as_strided(size, stride, dim)
        query = joined.as_strided((batch, heads, beams, head), (beams * 3 * dim, head, 3 * dim, 1))
        return self.mix_target(query, key, value, mask)

    def _attend_to_source(self, x: Tensor, cache: DecoderCache) -> Tensor:
        batch, beams, dim, heads = cache.batch, cache.beams, x.size(1), self.heads
        head = dim // heads
        query = self.source_query(x).as_strided(
            (batch, heads, beams, head), (beams * dim, head, dim, 1)
        )
        key, value = cache.cross[self.index]
        return self.mix_source(query, key, value, cache.cross_mask)


class _Mix:
    """`Attention.mix` for all beams of a sentence at once: they are its queries."""

    def __init__(self, module: Attention) -> None:
        self.spec = module.spec
        self.norm = module.norm
        self.output = _Linear.of(module.output)

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """``[batch, heads, beams, head]`` and keys and values to ``[rows, dim]``."""
        dtype = query.dtype
        if dtype != key.dtype:
            query = query.to(key.dtype)
        mixed = attend(
            query,
            key,
            value,
            mask,
            activation=self.spec.activation,
            power=self.spec.power,
            length_exponent=self.spec.length_exponent,
        ).transpose(1, 2)
        if self.norm is None:
            rows = mixed.flatten(2).flatten(0, 1)
        else:
            rows = self.norm.forward(mixed, heads_apart=True).flatten(0, 1)
        return self.output(rows if rows.dtype == dtype else rows.to(dtype))


class _Sum:
    """`Residual` without dropout."""

    def __init__(self, residual: Residual) -> None:
        self.norm = _LayerNorm.of(residual.norm)
        self.norm_first = residual.norm_first

    def before(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.norm_first else x

    def __call__(self, x: Tensor, added: Tensor) -> Tensor:
        added = added.add_(x)
        return added if self.norm_first else self.norm(added)


def _key_dtype(module: Attention, states: Tensor) -> torch.dtype:
    """As in `Attention.mix`: PyTorch's softmax attention is slow in bfloat16 on a CPU."""
    is_slow = states.dtype == torch.bfloat16 and states.device.type == "cpu"
    return torch.float32 if is_slow and module.spec.activation == "softmax" else states.dtype

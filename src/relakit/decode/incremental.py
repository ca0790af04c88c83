"""The decoder one position at a time: `Transformer.decode`, with what came before in a cache.

Shapes in comments: ``batch`` sentences, ``beams`` of each, ``rows`` = batch * beams, ``dim``.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relakit.attention import attention as attend
from relakit.decode.cache import CrossRows, DecoderCache
from relakit.model import Memory, Transformer
from relakit.model.transformer import Attention, DecoderLayer, Residual


class IncrementalDecoder:
    """Runs a model's decoder step by step, without gradients.

    It reads the model's weights when it is made (projections are joined), so make a new one when
    they have changed. The state of a search is in the `DecoderCache`: one decoder serves many.
    """

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.norm_first = model.config.norm_first
        self.layers = [
            _Layer(index, layer)
            for index, layer in enumerate(model.decoder.layers)
            if isinstance(layer, DecoderLayer)
        ]

    def start(self, memory: Memory, beams: int) -> DecoderCache:
        """A cache for ``beams`` hypotheses of each sentence that the encoder has read."""
        width = 2 * self.model.config.dim
        return DecoderCache(
            [layer.cross_rows(memory.states) for layer in self.layers],
            memory.mask,
            batch=memory.states.size(0),
            beams=beams,
            width=width,
            dtype=_cache_dtype(self.layers[0].attention, memory.states),
        )

    def step(self, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """The states ``[rows, dim]`` after another token ``[rows]`` of each beam."""
        embedding = self.model.embedding
        position = embedding.position_vectors(cache.steps + 1)[cache.steps]
        x = torch.add(position, F.embedding(tokens, embedding.weight), alpha=embedding.scale)
        cache.begin_step()
        mask = cache.mask()
        for layer in self.layers:
            x = layer.step(x, cache, mask)
        norm = self.model.decoder.norm
        return x if norm is None else _layer_norm(x, norm)


class _Layer:
    """A decoder layer's weights, laid out for steps."""

    def __init__(self, index: int, layer: DecoderLayer) -> None:
        self.index = index
        self.attention = layer.attention
        self.cross_attention = layer.cross_attention
        self.feed_forward = layer.feed_forward
        self.residuals = (
            layer.attention_residual,
            layer.cross_attention_residual,
            layer.feed_forward_residual,
        )
        self.heads = layer.attention.heads
        query, key_value = layer.attention.query, layer.attention.key_value
        with torch.no_grad():
            self.weight = torch.cat([query.weight, key_value.weight])
            self.bias = torch.cat([query.bias, key_value.bias])

    def cross_rows(self, states: Tensor) -> CrossRows:
        """Keys and values of the encoder's states ``[batch, source, dim]``."""
        dtype = _cache_dtype(self.cross_attention, states)
        key, value = self.cross_attention.keys_and_values(states)
        return CrossRows(key.to(dtype), value.to(dtype))

    def step(self, x: Tensor, cache: DecoderCache, mask: Tensor | None) -> Tensor:
        """``[rows, dim]`` to the same shape; the layer's new rows go to the cache."""
        first, second, third = self.residuals
        x = _sum(x, self._attend_to_target(_before(x, first), cache, mask), first)
        x = _sum(x, self._attend_to_source(_before(x, second), cache), second)
        inner, outer = self.feed_forward.inner, self.feed_forward.outer
        y = F.linear(_before(x, third), inner.weight, inner.bias).relu_()
        return _sum(x, F.linear(y, outer.weight, outer.bias), third)

    def _attend_to_target(self, x: Tensor, cache: DecoderCache, mask: Tensor | None) -> Tensor:
        batch, beams, dim, heads = cache.batch, cache.beams, x.size(1), self.heads
        joined = F.linear(x, self.weight, self.bias).view(batch, beams, 3 * dim)
        seen = cache.append(self.index, joined[:, :, dim:])
        count, head = seen.size(1), dim // heads
        sentence, row, _ = seen.stride()
        size, stride = (batch, heads, count, head), (sentence, head, row, 1)
        key = seen.as_strided(size, stride)
        value = seen.as_strided(size, stride, dim)
        query = joined.as_strided((batch, heads, beams, head), (beams * 3 * dim, head, 3 * dim, 1))
        return _mix(self.attention, query, key, value, mask)

    def _attend_to_source(self, x: Tensor, cache: DecoderCache) -> Tensor:
        batch, beams, dim, heads = cache.batch, cache.beams, x.size(1), self.heads
        projection = self.cross_attention.query
        head = dim // heads
        query = F.linear(x, projection.weight, projection.bias).as_strided(
            (batch, heads, beams, head), (beams * dim, head, dim, 1)
        )
        key, value = cache.cross[self.index]
        return _mix(self.cross_attention, query, key, value, cache.cross_mask)


def _mix(
    module: Attention, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> Tensor:
    """Attention of all beams of a sentence at once, norm and output projection: ``[rows, dim]``."""
    spec = module.spec
    dtype = query.dtype
    mixed = attend(
        query.to(key.dtype),
        key,
        value,
        mask,
        activation=spec.activation,
        power=spec.power,
        length_exponent=spec.length_exponent,
    ).transpose(1, 2)
    mixed = mixed.flatten(2) if module.norm is None else module.norm(mixed, heads_apart=True)
    mixed = mixed.view(-1, mixed.size(2)).to(dtype)
    return F.linear(mixed, module.output.weight, module.output.bias)


def _cache_dtype(module: Attention, states: Tensor) -> torch.dtype:
    """As in `Attention.mix`: PyTorch's softmax attention is slow in bfloat16 on a CPU."""
    is_slow = states.dtype == torch.bfloat16 and states.device.type == "cpu"
    return torch.float32 if is_slow and module.spec.activation == "softmax" else states.dtype


def _before(x: Tensor, residual: Residual) -> Tensor:
    return _layer_norm(x, residual.norm) if residual.norm_first else x


def _sum(x: Tensor, added: Tensor, residual: Residual) -> Tensor:
    added = added.add_(x)
    return added if residual.norm_first else _layer_norm(added, residual.norm)


def _layer_norm(x: Tensor, norm: nn.LayerNorm) -> Tensor:
    return torch.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)

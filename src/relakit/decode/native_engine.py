"""The search engine in C++, for CPUs: in float32, or with weights of one byte."""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relakit.attention_kinds import ATTENTION_KINDS
from relakit.broken_model import BrokenModelError
from relakit.data.prepared_format import Side
from relakit.data.tokenizer import END
from relakit.decode.best_tokens import Candidates, OutputLayer
from relakit.decode.shortlist import TokenIds
from relakit.model import Transformer
from relakit.model.embedding import sinusoids
from relakit.model.transformer import (
    Attention,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Residual,
)
from relakit.nn.threshold import current_threshold
from relakit.ops.native.extension import choose_isa, load_extension, why_unavailable

_CPU: Final = torch.device("cpu")
"""Where C++ reads and writes, in float32, whatever torch's default device and dtype are."""


def why_not_native(model: Transformer) -> list[str]:
    """Why `NativeEngine` cannot serve this model; an empty list if it can."""
    reasons = list(why_unavailable())
    devices = {parameter.device for parameter in model.parameters()}
    dtypes = {parameter.dtype for parameter in model.parameters()}
    if any(device.type != "cpu" for device in devices):
        reasons.append(f"the model is on {_listed(devices)}, not on the CPU")
    if dtypes != {torch.float32}:
        reasons.append(f"the model computes in {_listed(dtypes)}, not in torch.float32")
    if model.config.source_entries > model.config.vocabulary:
        reasons.append(
            f"the source's vocabulary has {model.config.source_entries:,} entries, more than the "
            f"target's {model.config.vocabulary:,}"
        )
    for kind in ATTENTION_KINDS:
        spec = model.config.attention_spec(kind)
        if spec.activation not in ("relu", "softmax") or spec.norm == "layer":
            reasons.append(f"{kind} attention is {model.config.attention(kind)!r}")
    return reasons


def _listed(values: Iterable[object]) -> str:
    return " and ".join(sorted(map(str, values)))


class NativeEngine:
    """See `Engine`. Copies the model's weights when it is created, laid out for this processor.

    Args:
        model: on the CPU, in float32; see `why_not_native`.
        in_bytes: use weights of one byte each, with a scale for each output; what they are
            multiplied with is rounded to bytes too, with a scale for each row.
    """

    def __init__(self, model: Transformer, *, in_bytes: bool = False) -> None:
        if reasons := why_not_native(model):
            raise ValueError(f"translation in C++ is not possible: {'; '.join(reasons)}")
        self._extension = load_extension()
        self._model = model
        self._in_bytes = in_bytes
        self._isa = choose_isa()
        # C++ reads these in place, so they are kept here: copies, like all other weights.
        self._target_embeddings = _embedded_vocabulary(model, "target")
        self._source_embeddings = self._target_embeddings
        if model.embedding.source_weight is not None:
            self._source_embeddings = _embedded_vocabulary(model, "source")
        self._positions = model.embedding.positions.clone()
        self._packed = self._extension.PackedModel(
            model.config.dim,
            model.config.heads,
            model.config.norm_first,
            self._source_embeddings.data_ptr(),
            self._target_embeddings.data_ptr(),
            # So that the padding of the vocabulary is never chosen.
            self._pack(model.embedding.weight.detach().contiguous(), None, filling=-math.inf),
        )
        self._add_layers(model)

    def _add_layers(self, model: Transformer) -> None:
        for layer in model.encoder.layers:
            assert isinstance(layer, EncoderLayer)
            self._packed.add_encoder_layer(
                self._attention(layer.attention, layer.attention_residual),
                self._feed_forward(layer.feed_forward, layer.feed_forward_residual),
            )
        for layer in model.decoder.layers:
            assert isinstance(layer, DecoderLayer)
            self._packed.add_decoder_layer(
                self._attention(layer.attention, layer.attention_residual),
                self._attention(layer.cross_attention, layer.cross_attention_residual),
                self._feed_forward(layer.feed_forward, layer.feed_forward_residual),
            )
        if model.encoder.norm is not None and model.decoder.norm is not None:
            norms = model.encoder.norm, model.decoder.norm
            self._packed.set_last_norms(*map(self._layer_norm, norms))

    def _attention(self, module: Attention, residual: Residual) -> Any:
        spec, norm, thresholds = module.spec, module.norm, _thresholds(module)
        gate = getattr(norm, "gate", None)
        is_cross = module.kind == "cross"
        return self._extension.PackedAttention(
            self._linear(*([module.query] if is_cross else [module.query, module.key_value])),
            self._linear(module.key_value) if is_cross else None,
            self._linear(module.output),
            spec.activation == "softmax",
            0 if thresholds is None else thresholds.data_ptr(),
            module.heads,
            spec.power,
            spec.length_exponent,
            0 if norm is None else norm.weight.data_ptr(),
            0 if gate is None else gate.data_ptr(),
            self._model.config.dim,
            0.0 if norm is None else norm.eps,
            self._layer_norm(residual.norm),
        )

    def _feed_forward(self, module: FeedForward, residual: Residual) -> Any:
        inner, outer = self._linear(module.inner), self._linear(module.outer)
        return self._extension.PackedFeedForward(inner, outer, self._layer_norm(residual.norm))

    def _layer_norm(self, norm: nn.LayerNorm) -> Any:
        return self._extension.PackedLayerNorm(
            norm.weight.data_ptr(), norm.bias.data_ptr(), self._model.config.dim, norm.eps
        )

    def _linear(self, *layers: nn.Linear) -> Any:
        """Layers with the same input, packed as one."""
        weight = torch.cat([layer.weight.detach() for layer in layers])
        return self._pack(weight, torch.cat([layer.bias.detach() for layer in layers]))

    def _pack(self, weight: Tensor, bias: Tensor | None, filling: float = 0.0) -> Any:
        return self._extension.PackedLinear(
            self._isa,
            weight.data_ptr(),
            0 if bias is None else bias.data_ptr(),
            *weight.shape,
            self._in_bytes,
            filling,
        )

    @property
    def device(self) -> torch.device:
        """See `Engine`, also for the other methods."""
        return self._target_embeddings.device

    def start(
        self,
        sources: Sequence[Sequence[int]],
        beams: int,
        allowed: Sequence[TokenIds] | None = None,
    ) -> "NativeHypotheses":
        threads = torch.get_num_threads()
        lengths = [len(source) for source in sources]
        positions = self.positions(max(lengths, default=0))
        search = self._extension.Search(
            self._isa,
            threads,
            self._packed,
            [token for source in sources for token in source],
            lengths,
            positions.data_ptr(),
            beams,
        )
        if allowed is not None:
            tokens = np.concatenate([np.empty(0, np.int64), *allowed])
            lengths = [len(one) for one in allowed]
            search.allow(self._isa, threads, tokens.ctypes.data, lengths)
        return NativeHypotheses(search, self, self._isa, threads)

    @cached_property
    def output(self) -> OutputLayer:
        """Computes log-probabilities of all tokens, in float32, as C++ only finds the best ones.

        It is another copy of the embeddings, so it is made when it is first needed.
        """
        return OutputLayer(self._model.embedding.weight)

    def positions(self, count: int) -> Tensor:
        """The vectors of at least the first ``count`` positions."""
        table = self._positions
        if count > table.size(0):
            timescales = self._model.config.timescales
            with _CPU:
                table = self._positions = sinusoids(2 * count, table.size(1), timescales)
        return table


@torch.no_grad()
def _embedded_vocabulary(model: Transformer, side: Side) -> Tensor:
    """What the model reads for each token, apart from its position: ``[vocabulary, dim]``."""
    rows = model.config.source_entries if side == "source" else model.config.vocabulary
    tokens = torch.arange(rows, device=_CPU)
    embedded = model.embedding.without_positions(tokens, side=side)
    # C++ knows only the size of the target's vocabulary: no id below it may lead elsewhere.
    return F.pad(embedded, (0, 0, 0, model.config.vocabulary - rows)).contiguous()


def _thresholds(module: Attention) -> Tensor | None:
    """One threshold for each head; None if all are 0."""
    threshold = current_threshold(module.spec, module.threshold)
    if isinstance(threshold, Tensor):
        return threshold.detach()
    if not threshold:
        return None
    return torch.full((module.heads,), threshold, dtype=torch.float32, device=_CPU)


class NativeHypotheses:
    """See `RunningHypotheses`."""

    least_share_to_drop = 0.0  # nothing is copied

    def __init__(self, search: Any, engine: NativeEngine, isa: str, threads: int) -> None:
        self._search = search
        self._engine = engine
        self._isa = isa
        self._threads = threads
        self.steps = 0
        """See `RunningHypotheses`, also for the other methods."""

    def candidates(
        self,
        tokens: Tensor,
        scores: Tensor,
        count: int,
        *,
        forbidden: Sequence[int],
        must_end: Sequence[bool] | None,
    ) -> Candidates:
        self.step(tokens)
        batch = scores.size(0)
        best_scores = torch.empty(batch, count, dtype=torch.float32, device=_CPU)
        best_beams = torch.empty(batch, count, dtype=torch.int64, device=_CPU)
        best_tokens = torch.empty_like(best_beams)
        scores = scores.contiguous()
        ending = None if must_end is None else torch.tensor(must_end, device=_CPU)
        is_finite: bool = self._search.choose(
            self._isa,
            self._threads,
            scores.data_ptr(),
            count,
            forbidden,
            0 if ending is None else ending.data_ptr(),
            END,
            best_scores.data_ptr(),
            best_beams.data_ptr(),
            best_tokens.data_ptr(),
        )
        if not is_finite:
            raise BrokenModelError
        return Candidates(best_scores, best_beams, best_tokens)

    def log_probabilities(self, tokens: Tensor) -> Tensor:
        output = self._engine.output
        shape = (tokens.size(0), output.weight.size(0))
        states = torch.empty(shape, dtype=torch.float32, device=_CPU)
        self.step(tokens, states)
        return output.log_probabilities(states)

    def step(self, tokens: Tensor, states: Tensor | None = None) -> None:
        """Read another token ``[rows]`` of each beam; ``states`` takes ``[rows, dim]``."""
        table = self._engine.positions(self.steps + 1)
        position = table.data_ptr() + self.steps * table.stride(0) * table.element_size()
        tokens = tokens.contiguous()
        self._search.step(
            self._isa,
            self._threads,
            tokens.data_ptr(),
            position,
            0 if states is None else states.data_ptr(),
        )
        self.steps += 1

    def reorder(self, parents: Tensor) -> None:
        parents = parents.contiguous()
        self._search.reorder(parents.data_ptr())

    def keep(self, sentences: Sequence[int]) -> None:
        self._search.keep(sentences)

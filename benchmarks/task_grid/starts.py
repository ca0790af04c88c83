"""Ways in which a model trained with softmax may start after its conversion."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import torch
from torch import Tensor, nn

import relakit
import relakit.hf
from relakit.hf.parts import parts_of
from relakit.nn.norms import RMSNorm
from relakit.ops.call import AttentionCall
from relakit.ops.listeners import add_listener, remove_listener

SCALE: Final = 4.0
QUANTILE: Final = 0.95

Batches = Sequence[Tensor]
"""Token numbers ``[batch, positions]``"""


def converted(base: Any, attention: relakit.AttentionSpec, start: str, batches: Batches) -> Any:
    """A copy of a Llama with another attention, prepared in the way that ``start`` names."""
    model = copy.deepcopy(base)
    relakit.hf.convert(model, attention)
    STARTS[start](model, base, batches)
    return model


def _as_converted(model: Any, base: Any, batches: Batches) -> None:
    pass


def _calibrated(model: Any, base: Any, batches: Batches) -> None:
    relakit.calibrate(model, batches)


def _ones(model: Any, base: Any, batches: Batches) -> None:
    """Set every gain to 1 and every gate to half open."""
    for norm in _norms(model):
        nn.init.ones_(norm.weight)
        if isinstance(norm, relakit.GatedRMSNorm):
            nn.init.zeros_(norm.gate)


def _one_gain(model: Any, base: Any, batches: Batches) -> None:
    """Set one gain per module, so that its output is as large as softmax's."""
    _ones(model, base, batches)
    for norm, size in zip(_norms(model), _output_sizes(base, batches), strict=True):
        opening = 0.5 if isinstance(norm, relakit.GatedRMSNorm) else 1.0
        nn.init.constant_(norm.weight, size / opening)


def _larger_scores(model: Any, base: Any, batches: Batches) -> None:
    """Calibrate, then enlarge the scores by a factor."""
    relakit.calibrate(model, batches)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_proj.weight.mul_(SCALE)


def _thresholds(model: Any, base: Any, batches: Batches) -> None:
    """Set thresholds that leave each head its largest scores, then calibrate."""
    quantiles = _score_quantiles(base, batches[:1])
    for layer, quantile in zip(model.model.layers, quantiles, strict=True):
        parts = parts_of(layer.self_attn)
        assert parts is not None
        assert parts.threshold is not None, "the attention needs threshold='learned'"
        with torch.no_grad():
            parts.threshold.copy_(quantile)
    relakit.calibrate(model, batches)


STARTS: Final[Mapping[str, Callable[[Any, Any, Batches], None]]] = MappingProxyType(
    {
        "as converted": _as_converted,
        "calibrated": _calibrated,
        "gains 1, gates half open": _ones,
        "one gain for each module": _one_gain,
        "calibrated, scores times 4": _larger_scores,
        "calibrated, threshold at 95%": _thresholds,
    }
)


def _norms(model: nn.Module) -> list[RMSNorm]:
    return [module for module in model.modules() if isinstance(module, RMSNorm)]


@torch.no_grad()
def _output_sizes(base: Any, batches: Batches) -> list[float]:
    """Root mean square of each layer's attention output before its projection."""
    squares: dict[nn.Module, list[Tensor]] = {}

    def measure(projection: nn.Module, args: tuple[Tensor, ...]) -> None:
        squares.setdefault(projection, []).append(args[0].square().mean())

    projections = [layer.self_attn.o_proj for layer in base.model.layers]
    handles = [projection.register_forward_pre_hook(measure) for projection in projections]
    for batch in batches:
        base(batch)
    for handle in handles:
        handle.remove()
    return [math.sqrt(float(torch.stack(squares[p]).mean())) for p in projections]


@torch.no_grad()
def _score_quantiles(base: Any, batches: Batches) -> list[Tensor]:
    """Quantiles by head of each layer's scores that are not masked."""
    quantiles: list[Tensor] = []
    model = copy.deepcopy(base)
    relakit.hf.convert(model, "softmax")  # the same, but its calls reach listeners

    def measure(call: AttentionCall) -> None:
        scores = call.query @ call.key.mT * call.score_scale  # [batch, heads, queries, keys]
        visible = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        by_head = scores[..., visible].transpose(0, 1).flatten(1)
        quantiles.append(by_head[:, ::8].quantile(QUANTILE, dim=1))  # an eighth is plenty

    add_listener(measure)
    try:
        for batch in batches:
            model(batch)
    finally:
        remove_listener(measure)
    return quantiles

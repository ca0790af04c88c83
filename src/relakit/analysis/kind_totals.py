"""The numbers of one kind of attention, added up over batches."""

from collections.abc import Sequence

import torch
from relakit.analysis.attention_pass import AttentionBatch
from relakit.analysis.diversity import SUM_TO_ONE, diversity_share
from relakit.analysis.results import HeadValues, Kind, KindResult, LayerValues
from relakit.analysis.shares import ShareTotal
from relakit.analysis.sinks import end_key_share, first_key_share
from relakit.analysis.sparsity import layer_null_share, null_share, zero_share
from relakit.model import ModelConfig
from torch import Tensor


class KindTotals:
    """What `KindResult` is made from; its size does not depend on what was added."""

    def __init__(self, kind: Kind, config: ModelConfig, temperatures: Sequence[float]) -> None:
        self.kind = kind
        self.attention = config.attention(kind)
        layers = config.encoder_layers if kind == "encoder" else config.decoder_layers
        self.queries = 0
        self.zeros = ShareTotal(layers, config.heads)
        self.null = ShareTotal(layers, config.heads)
        self.layer_null = ShareTotal(layers)
        self.first = ShareTotal(layers, config.heads)
        self.end = None if kind == "decoder" else ShareTotal(layers, config.heads)
        sums_to_one = config.attention_spec(kind).activation in SUM_TO_ONE
        self.temperatures: dict[str, float | None] = (
            {"1": None} if sums_to_one else {f"{number:g}": number for number in temperatures}
        )
        self.diversity = {name: ShareTotal(layers) for name in self.temperatures}

    def add(self, batch: AttentionBatch) -> None:
        """Add the attention of a batch."""
        valid = batch.valid(self.kind)
        key_sizes = batch.key_sizes(self.kind)
        self.queries += int(batch.query_sizes(self.kind).sum())
        for layer, weights in enumerate(batch.layers[self.kind]):
            self.zeros.add(zero_share(weights, valid), layer)
            self.null.add(null_share(weights, valid), layer)
            self.layer_null.add(layer_null_share(weights, valid), layer)
            self.first.add(first_key_share(weights, valid), layer)
            if self.end is not None:
                self.end.add(end_key_share(weights, key_sizes, valid), layer)
            for name, temperature in self.temperatures.items():
                self.diversity[name].add(diversity_share(weights, valid, temperature), layer)

    def result(self) -> KindResult:
        return KindResult(
            kind=self.kind,
            attention=self.attention,
            queries=self.queries,
            sparsity=head_values(self.zeros.rates()),
            null_rate=head_values(self.null.rates()),
            layer_null_rate=layer_values(self.layer_null.rates()),
            first_sink=head_values(self.first.rates()),
            end_sink=None if self.end is None else head_values(self.end.rates()),
            diversity={name: layer_values(x.rates()) for name, x in self.diversity.items()},
        )


def head_values(rates: Tensor) -> HeadValues:
    """From ``[layers, heads]``, NaN where nothing was counted."""
    return tuple(layer_values(layer) for layer in rates)


def layer_values(rates: Tensor) -> LayerValues:
    """From ``[layers]``, NaN where nothing was counted."""
    nothing = torch.isnan(rates).tolist()
    return tuple(None if no else rate for no, rate in zip(nothing, rates.tolist(), strict=True))

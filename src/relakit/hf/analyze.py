"""`analyze`: the numbers of the paper's analysis for the self-attention of a model over texts."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from relakit.analysis.results import AnalysisSettings, Kind, KindResult
from relakit.analysis.totals import KindTotals
from relakit.hf.interface_modules import interface_modules
from relakit.hf.parts import parts_of
from relakit.model.attention_outputs import OutputSums, output_sums
from relakit.nn.capture import AttentionRecord, capture
from relakit.nn.module_names import Where, check_patterns, is_selected
from relakit.nn.variants import AttentionSpec


@dataclass(frozen=True)
class TextView:
    """All self-attention of a model over one text, to look at."""

    text: str
    tokens: tuple[str, ...]
    weights: npt.NDArray[np.float32]
    """``[layers, heads, queries, keys]``"""


@dataclass(frozen=True)
class TextAnalysis:
    """The numbers of a model's self-attention over texts."""

    result: KindResult
    """By layer and head, as `relakit analyze` has them for its own models"""
    layers: tuple[str, ...]
    """The name of each layer's module; one that runs several times is there several times"""
    texts: int
    views: tuple[TextView, ...]
    """Of the texts that were to be kept, in their order"""


def analyze(
    model: PreTrainedModel,
    tokenizer: Any,
    texts: Iterable[str],
    *,
    where: Where = None,
    keep: int = 0,
    settings: AnalysisSettings | None = None,
) -> TextAnalysis:
    """Measure the self-attention of a converted model over texts, one after the other.

    The model is an encoder or a decoder; encoder-decoders are for `relakit.capture`. To measure one
    with softmax, convert it to ``"softmax"`` first, which changes no result.

    Args:
        model: a model that `relakit.hf.convert` changed.
        tokenizer: the model's tokenizer.
        texts: what it reads.
        where: which attention modules, as in `relakit.convert_attention`; None for all. They must
            all have the same attention and number of heads.
        keep: of how many texts, from the first, to keep the weights.
        settings: what the numbers depend on.

    Raises:
        ValueError: there is nothing to measure, or it has no common measure; a text without tokens
            or with more of them than the model has positions.
    """
    modules = _modules_to_measure(model, where)
    spec = _common_spec(modules)
    kind = _kind_of(modules)
    settings = settings or AnalysisSettings()
    totals: KindTotals | None = None
    layers: tuple[str, ...] = ()
    views = []
    count = 0
    with _evaluating(model):
        for count, text in enumerate(texts, 1):
            inputs = _encoded(model, tokenizer, text, count)
            records, sums = _run(model, inputs, modules)
            names = tuple(name for name, _ in records)
            if totals is None:
                layers, totals = names, _totals(kind, spec, records, settings)
            _add(totals, [record for _, record in records], sums)
            if count <= keep:
                views.append(_view(text, tokenizer, inputs, records))
    if totals is None:
        raise ValueError("there are no texts to analyze")
    return TextAnalysis(totals.result(), layers, count, tuple(views))


Named = Sequence[tuple[str, AttentionRecord]]
"""Records of one text in the order of the layers, with the names of their modules."""


def _modules_to_measure(model: PreTrainedModel, where: Where) -> dict[str, nn.Module]:
    if getattr(model.config, "is_encoder_decoder", False):
        raise ValueError(
            f"{type(model).__name__} is an encoder-decoder, which does not read one text; use "
            "relakit.capture and the functions of relakit.analysis"
        )
    found = {
        module: names
        for module, names in interface_modules(model).items()
        if parts_of(module) is not None
    }
    if not found:
        raise ValueError(
            f"{type(model).__name__} was not converted; relakit.hf.convert(model, 'softmax') makes "
            "its attention visible and changes no result"
        )
    all_names = [name for names in found.values() for name in names]
    check_patterns(where, all_names, shown=all_names)
    chosen = {names[0]: m for m, names in found.items() if is_selected(where, names, m)}
    if not chosen:
        raise ValueError(f"where selects none of the modules {', '.join(all_names)}")
    return chosen


def _common_spec(modules: dict[str, nn.Module]) -> AttentionSpec:
    specs = {
        name: parts.attention for name, module in modules.items() if (parts := parts_of(module))
    }
    first, *others = specs
    for other in others:
        if specs[other] != specs[first]:
            raise ValueError(
                f"{first} and {other} have different kinds of attention, {specs[first]} and "
                f"{specs[other]}; choose those of one kind with where=..."
            )
    return specs[first]


def _kind_of(modules: dict[str, nn.Module]) -> Kind:
    causal = {name: bool(getattr(module, "is_causal", False)) for name, module in modules.items()}
    first, *others = causal
    for other in others:
        if causal[other] != causal[first]:
            raise ValueError(
                f"of {first} and {other}, one is causal and one is not; choose one kind with "
                "where=..."
            )
    return "decoder" if causal[first] else "encoder"


@contextmanager
def _evaluating(model: PreTrainedModel) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def _encoded(model: PreTrainedModel, tokenizer: Any, text: str, number: int) -> dict[str, Tensor]:
    inputs = dict(tokenizer(text, return_tensors="pt"))
    tokens = inputs["input_ids"].size(1)
    limit = getattr(model.config, "max_position_embeddings", None)
    if tokens == 0:
        raise ValueError(f"text {number:,} has no tokens")
    if isinstance(limit, int) and tokens > limit:
        raise ValueError(
            f"text {number:,} has {tokens:,} tokens, but the model has {limit:,} positions; split "
            "the text"
        )
    return {name: tensor.to(model.device) for name, tensor in inputs.items()}


def _run(
    model: PreTrainedModel, inputs: dict[str, Tensor], modules: dict[str, nn.Module]
) -> tuple[Named, list[OutputSums]]:
    """Records of all layers, and what their outputs amount to where a norm reads them."""
    sums: list[OutputSums] = []
    order: list[str] = []
    words = torch.ones_like(inputs["input_ids"], dtype=torch.bool)

    def watch(name: str, module: nn.Module, stack: ExitStack) -> None:
        def note(*_: object) -> None:
            order.append(name)

        def measure(norm: nn.Module, args: tuple[Tensor, ...]) -> None:
            sums.append(output_sums(args[0], getattr(norm, "gate", None), words))

        stack.callback(module.register_forward_pre_hook(note).remove)
        parts = parts_of(module)
        if parts is not None and parts.norm is not None:
            stack.callback(parts.norm.register_forward_pre_hook(measure).remove)

    with ExitStack() as stack:
        for name, module in modules.items():
            watch(name, module, stack)
        with capture(model, where=lambda _, module: module in modules.values()) as records:
            model(**inputs)
    queues = {name: iter(recorded) for name, recorded in records.items()}
    return [(name, next(queues[name])) for name in order], sums


def _totals(
    kind: Kind, spec: AttentionSpec, records: Named, settings: AnalysisSettings
) -> KindTotals:
    (first, some), *others = records
    heads = some.weights.size(1)
    for name, record in others:
        if record.weights.size(1) != heads:
            raise ValueError(
                f"{first} has {heads} heads and {name} {record.weights.size(1)}; choose modules "
                "with the same number with where=..."
            )
    return KindTotals(
        kind, spec, layers=len(records), heads=heads, temperatures=settings.temperatures
    )


def _add(
    totals: KindTotals, records: Sequence[AttentionRecord], sums: Sequence[OutputSums]
) -> None:
    totals.queries += records[0].weights.size(2)
    for layer, record in enumerate(records):
        keys = torch.tensor([record.weights.size(3)])
        valid = None if record.valid is None else record.valid.cpu()
        totals.add_layer(layer, record.weights.cpu(), valid, keys)
    for layer, layer_sums in enumerate(sums):
        totals.outputs[layer] += layer_sums


def _view(text: str, tokenizer: Any, inputs: dict[str, Tensor], records: Named) -> TextView:
    tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0].tolist())
    weights = torch.cat([record.weights for _, record in records])
    return TextView(text, tuple(tokens), weights.cpu().float().numpy())

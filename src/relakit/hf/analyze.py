"""`analyze`: the numbers of the paper's analysis for a model's self-attention over texts."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from relakit.analysis.results import AnalysisSettings
from relakit.analysis.text_analysis import RecordedText, analyze_texts
from relakit.analysis.text_results import TextAnalysis
from relakit.hf.interface_modules import interface_modules
from relakit.hf.parts import parts_of
from relakit.hf.text_inputs import encode_text
from relakit.model.attention_outputs import OutputSums, output_sums
from relakit.model.evaluation import evaluation_mode
from relakit.nn.capture import AttentionRecord, capture
from relakit.nn.module_names import Where, check_patterns, is_selected
from relakit.nn.variants import AttentionSpec


def analyze(
    model: PreTrainedModel,
    tokenizer: Any,
    texts: Iterable[str],
    *,
    where: Where = None,
    keep: Collection[int] = (),
    settings: AnalysisSettings | None = None,
    name: str | None = None,
    inputs: Mapping[str, str] | None = None,
    places: Sequence[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> TextAnalysis:
    """Measure the self-attention of a converted model over texts, one after the other.

    The model must be an encoder or a decoder; for encoder-decoders, use `relakit.capture`. To
    measure a model with softmax, convert it to ``"softmax"`` first, which changes no result.
    `relakit.hf.report` turns the result into a page.

    Args:
        model: a model that `relakit.hf.convert` changed.
        tokenizer: the model's tokenizer.
        texts: the texts that the model reads.
        where: which attention modules, as in `relakit.convert_attention`; None for all. They must
            all have the same attention and number of heads.
        keep: indices, from 0, of the texts whose weights are kept.
        settings: what the numbers depend on.
        name: the model's name in tables and figures; its class name if None.
        inputs: a description of what is analyzed, for people.
        places: what to call the texts in errors; "text 1" and so on if None.
        progress: called with the number of finished texts.

    Raises:
        ValueError: there is nothing to measure, or the modules have no common measure; a text has
            no tokens, or more tokens than the model has positions.
    """
    modules = modules_to_measure(model, where)
    spec = _common_spec(modules)
    is_causal = _are_causal(modules)

    def recorded() -> Iterator[RecordedText]:
        for index, text in enumerate(texts):
            place = f"text {index + 1:,}" if places is None else places[index]
            encoded = encode_text(model, tokenizer, text, place)
            yield RecordedText(encoded.read, *_run(model, encoded.inputs, modules))
            if progress is not None:
                progress(index + 1)

    # Not in inference mode: models keep some of what they compute, such as position tables.
    with evaluation_mode(model), torch.no_grad():
        return analyze_texts(
            recorded(),
            name=type(model).__name__ if name is None else name,
            attention=spec,
            keep=keep,
            settings=settings,
            inputs=inputs,
            is_causal=is_causal,
        )


def modules_to_measure(model: PreTrainedModel, where: Where = None) -> dict[str, nn.Module]:
    """The converted self-attention modules of a model that reads texts, by name.

    Raises:
        ValueError: the model reads something else or was not converted, or ``where`` selects
            nothing.
    """
    if model.main_input_name != "input_ids":
        raise ValueError(
            f"{type(model).__name__} reads {model.main_input_name}, not text; use relakit.capture "
            "and the functions of relakit.analysis"
        )
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


def _are_causal(modules: dict[str, nn.Module]) -> bool:
    causal = {name: bool(getattr(module, "is_causal", False)) for name, module in modules.items()}
    first, *others = causal
    for other in others:
        if causal[other] != causal[first]:
            raise ValueError(
                f"of {first} and {other}, one is causal and one is not; choose one kind with "
                "where=..."
            )
    return causal[first]


def _run(
    model: PreTrainedModel, inputs: dict[str, Tensor], modules: dict[str, nn.Module]
) -> tuple[list[tuple[str, AttentionRecord]], list[OutputSums]]:
    """Records of all layers, and sums over the outputs of those layers that have a norm."""
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

"""`report`: write a folder with numbers, figures and a page about self-attention over texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from transformers import PreTrainedModel

from relakit.analysis.long_pairs import check_weights_memory
from relakit.analysis.results import AnalysisSettings, spread
from relakit.analysis.settings import EXPLORED
from relakit.analysis.text_results import TextAnalysis
from relakit.hf.analyze import analyze, modules_to_measure
from relakit.hf.text_inputs import TooLongError, encode_text
from relakit.model.memory import FLOAT_BYTES
from relakit.nn.module_names import Where
from relakit.report.packing import fits_page
from relakit.report.page_file import spread_to_fit
from relakit.report.report_folder import WrittenReport, check_report_folder, write_report
from relakit.report.settings import TITLE

TooLong: TypeAlias = Literal["error", "skip"]

VIEW_BYTES: Final = 1 << 30
"""Maximum memory for the weights of a model that are kept until they are written"""


class _Size(NamedTuple):
    """The size of a text, in the model for which it is largest."""

    tokens: int
    weights: int
    """Number of weights in all layers and heads"""


def report(
    model: PreTrainedModel | Mapping[str, PreTrainedModel],
    tokenizer: Any,
    texts: str | Iterable[str],
    out: str | PathLike[str],
    *,
    where: Where = None,
    explored: int = EXPLORED,
    too_long: TooLong = "error",
    settings: AnalysisSettings | None = None,
    title: str = TITLE,
    figures: bool = True,
) -> WrittenReport:
    """Write a report about the self-attention of converted models over texts.

    ::

        relakit.hf.report({"softmax": one, "ReLA-g": other}, tokenizer, ["A text."], "report")

    The folder has the numbers of `analyze` as JSON and CSV, figures if matplotlib is installed, and
    ``report.html``, a single page that needs no network.

    Args:
        model: an encoder or a decoder that `relakit.hf.convert` changed; or several, by name. The
            others are compared with the first.
        tokenizer: the models' tokenizer; or a mapping from model names to tokenizers.
        texts: the texts that the models read; a single text may be a string.
        out: the folder; an earlier report is replaced, anything else is an error.
        where: which attention modules, as in `analyze`.
        explored: how many texts the page shows at most, spread over all texts.
        too_long: what to do with a text that has more tokens than a model has positions: raise an
            error, or leave it out for all models.
        settings: what the numbers depend on.
        title: the title at the top of the page.
        figures: whether to draw figures, if matplotlib is installed.

    Raises:
        OSError: the folder cannot be written, or holds something else.
        ValueError: as in `analyze`.
    """
    check_report_folder(Path(out))
    analyzed = analyze_for_report(
        named_models(model),
        tokenizer,
        [texts] if isinstance(texts, str) else list(texts),
        where=where,
        explored=explored,
        too_long=too_long,
        settings=settings,
    )
    return write_report(analyzed, Path(out), title=title, figures=figures)


def named_models(
    model: PreTrainedModel | Mapping[str, PreTrainedModel],
) -> dict[str, PreTrainedModel]:
    """Models by name; a single model gets the name of its class."""
    return dict(model) if isinstance(model, Mapping) else {type(model).__name__: model}


def analyze_for_report(
    models: Mapping[str, PreTrainedModel],
    tokenizer: Any,
    texts: Sequence[str],
    *,
    where: Where = None,
    explored: int = EXPLORED,
    too_long: TooLong = "error",
    settings: AnalysisSettings | None = None,
    places: Sequence[str] | None = None,
    inputs: Mapping[str, str] | None = None,
    left_out: Callable[[Sequence[str]], None] | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> list[TextAnalysis]:
    """Analyze each model over the same texts, after checking all texts.

    Args:
        models: the models by name.
        tokenizer: as in `report`.
        texts: the texts that they read.
        where: as in `report`.
        explored: as in `report`.
        too_long: as in `report`.
        settings: as in `report`.
        places: what to call the texts in errors; "text 1" and so on if None.
        inputs: a description of what is analyzed, for people.
        left_out: called with the reasons if texts are left out.
        progress: called with a model's name and the number of finished texts.
    """
    if not models:
        raise ValueError("a report needs at least one model, got none")
    if too_long not in ("error", "skip"):
        raise ValueError(f"too_long must be error or skip, got {too_long!r}")
    if not texts:
        raise ValueError("there are no texts to analyze")
    tokenizers = _tokenizers(models, tokenizer)
    matrices = {name: _count_matrices(model, where) for name, model in models.items()}
    places = [f"text {n:,}" for n in range(1, len(texts) + 1)] if places is None else places
    sizes, reasons = _sizes(models, tokenizers, texts, places, matrices, too_long)
    known = dict(inputs or {})
    if reasons:
        known["left out"] = f"{len(reasons):,} of {len(texts):,} texts, which are too long"
        if left_out is not None:
            left_out(reasons)
    kept = list(sizes)
    keep = _kept_views(list(sizes.values()), explored)
    return [
        analyze(
            model,
            tokenizers[name],
            [texts[index] for index in kept],
            where=where,
            keep=keep,
            settings=settings,
            name=name,
            inputs={"model": type(model).__name__, **known},
            places=[places[index] for index in kept],
            progress=None if progress is None else _naming(progress, name),
        )
        for name, model in models.items()
    ]


def _naming(progress: Callable[[str, int], None], name: str) -> Callable[[int], None]:
    return lambda done: progress(name, done)


def _tokenizers(models: Mapping[str, PreTrainedModel], tokenizer: Any) -> dict[str, Any]:
    # Tokenizers are not mappings, although the batches that they return are.
    if not isinstance(tokenizer, Mapping):
        return dict.fromkeys(models, tokenizer)
    missing = [name for name in models if name not in tokenizer]
    if missing:
        raise ValueError(
            f"there is no tokenizer for {', '.join(missing)}, only for {', '.join(tokenizer)}"
        )
    return {name: tokenizer[name] for name in models}


def _count_matrices(model: PreTrainedModel, where: Where) -> int:
    """Roughly how many weight matrices there are for one text."""
    modules = modules_to_measure(model, where)
    heads = getattr(model.config, "num_attention_heads", None)
    # A module that several layers share runs once per layer.
    layers = getattr(model.config, "num_hidden_layers", None)
    return max(len(modules), layers if isinstance(layers, int) else 0) * (
        heads if isinstance(heads, int) else 1
    )


def _sizes(
    models: Mapping[str, PreTrainedModel],
    tokenizers: Mapping[str, Any],
    texts: Sequence[str],
    places: Sequence[str],
    matrices: Mapping[str, int],
    too_long: TooLong,
) -> tuple[dict[int, _Size], list[str]]:
    """Sizes by index of the text, and the reasons why the other texts were left out."""
    sizes: dict[int, _Size] = {}
    reasons = []
    for index, (text, place) in enumerate(zip(texts, places, strict=True)):
        try:
            of_models = []
            for name, model in models.items():
                tokens = len(encode_text(model, tokenizers[name], text, place).read.labels)
                weights = matrices[name] * tokens**2
                what = f"{name} over {place} ({tokens:,} tokens)"
                check_weights_memory(what, weights, advice="split the text")
                of_models.append(_Size(tokens, weights))
            sizes[index] = _Size(*map(max, zip(*of_models, strict=True)))
        except TooLongError as error:
            if too_long == "error":
                raise
            reasons.append(str(error))
    if not sizes:
        raise ValueError(f"all {len(texts):,} texts are too long; the first: {reasons[0]}")
    return sizes, reasons


def _kept_views(sizes: Sequence[_Size], explored: int) -> list[int]:
    """Indices of the texts to keep: those that the page can show, as many as fit into memory."""
    shown = [index for index, size in enumerate(sizes) if fits_page(*size)]
    wanted = [shown[number] for number in spread(explored, len(shown))]
    needed = [FLOAT_BYTES * sizes[index].weights for index in wanted]
    return [wanted[number] for number in spread_to_fit(needed, VIEW_BYTES)]

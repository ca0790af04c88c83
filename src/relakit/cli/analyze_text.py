"""`relakit analyze-text`: what the self-attention of Hugging Face models does on texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relakit.amounts import number_with_noun
from relakit.analysis.settings import EXPLORED
from relakit.cli.analyze import (
    DATA,
    NUMBERS,
    OUTPUT,
    USUAL_TEMPERATURES,
    analysis_bar,
    analysis_settings,
    check_names,
    mean_percent,
    print_written,
)
from relakit.cli.consoles import messages_console, results_console
from relakit.cli.translator_options import Device, Threads
from relakit.data.json_file import read_json
from relakit.data.lines import check_has_text, read_lines
from relakit.decode.settings import DEVICE
from relakit.files.output_paths import MODEL
from relakit.limits import checked_threads
from relakit.model.description import FORMAT
from relakit.report.settings import MAX_BYTES, TITLE
from relakit.threads import set_threads

if TYPE_CHECKING:
    from relakit.analysis import TextAnalysis
    from relakit.hf.report import TooLong


def analyze_text(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A folder with a converted Hugging Face model.",
            file_okay=False,
            show_default=False,
        ),
    ],
    text: Annotated[
        Path,
        typer.Option(help="Texts, one per line; blank lines are skipped.", rich_help_panel=DATA),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where to write.", rich_help_panel=OUTPUT)
    ],
    compare: Annotated[
        list[Path] | None,
        typer.Option(help="Another model's folder. Repeatable.", file_okay=False),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            help="A model's name in the figures: give one per model, MODEL first. \\[default: its "
            "folder's name]",
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="The folder of a tokenizer for all models. \\[default: each model's own]"
        ),
    ] = None,
    unconverted: Annotated[
        bool,
        typer.Option(
            "--unconverted",
            help="Also accept models that were not converted, and analyze them with softmax.",
        ),
    ] = False,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Analyze only attention modules with a matching name, such as '*layers.0.*'. "
            "Repeatable.",
            rich_help_panel=NUMBERS,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Use only this many texts, from the start.", rich_help_panel=DATA),
    ] = None,
    too_long: Annotated[
        str,
        typer.Option(
            metavar="skip|error",
            help="Whether a text with more tokens than a model has positions is left out and "
            "reported, or ends the command with an error.",
            rich_help_panel=DATA,
        ),
    ] = "error",
    temperatures: Annotated[
        str | None,
        typer.Option(
            help=f"Temperatures of head diversity. \\[default: {USUAL_TEMPERATURES}]",
            rich_help_panel=NUMBERS,
        ),
    ] = None,
    explore: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many texts to show in the report, spread over all of them; fewer if the file "
            f"would grow beyond {MAX_BYTES / 1e6:g} MB. \\[default: {EXPLORED}]",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(help=f"The report's title. \\[default: {TITLE}]", rich_help_panel=OUTPUT),
    ] = None,
    threads: Threads = None,
    device: Device = DEVICE,
) -> None:
    """Analyze the self-attention of Hugging Face models on texts.

    For encoders and decoder-only models that were converted with relakit.hf.convert and saved with
    save_pretrained. Measures sparsity, null attention, sinks and head diversity of every layer and
    head. DIR gets the numbers as JSON and CSV, figures, and report.html: one page with all of it,
    which needs no network. docs/huggingface.md says more; relakit analyze is for translation
    models.
    """
    folders = [model, *(compare or ())]
    if name:
        check_names(name, len(folders))
    settings = analysis_settings(temperatures=temperatures)
    if too_long not in ("skip", "error"):
        raise ValueError(f"--too-long must be skip or error, got {too_long!r}")
    if threads is not None:
        checked_threads("--threads", threads)
    from relakit.files.output_paths import refuse_inputs
    from relakit.report.report_folder import check_report_folder

    inputs: dict[str, Any] = {"--text": text, "MODEL": model, "--compare": compare}
    refuse_inputs("--out", out, {**inputs, "--tokenizer": tokenizer})
    check_report_folder(out)
    texts, places = _read_texts(text, limit)
    for folder in folders:
        _check_hugging_face(folder)
    if tokenizer is not None and not tokenizer.is_dir():
        raise ValueError(f"--tokenizer {tokenizer}: there is no such folder")
    models, tokenizers = _load(folders, name, tokenizer, unconverted, threads, device)
    from relakit.hf.report import analyze_for_report
    from relakit.hf.text_inputs import TooLongError
    from relakit.report import write_report

    with analysis_bar(messages_console(), len(texts)) as progress:
        try:
            analyzed = analyze_for_report(
                models,
                tokenizers,
                texts,
                where=where or None,
                explored=EXPLORED if explore is None else explore,
                too_long=cast("TooLong", too_long),
                settings=settings,
                places=places,
                inputs={"texts": str(text)},
                left_out=_report_left_out,
                progress=lambda its_name, done: progress(its_name, "attention", done),
            )
        except TooLongError as error:
            raise ValueError(f"{error}, or leave it out with --too-long skip") from None
    written = write_report(analyzed, out, title=TITLE if title is None else title)
    console = results_console()
    _print_summary(analyzed, console)
    print_written(written, analyzed[0].texts, console, read="text", explored="text")


def _read_texts(path: Path, limit: int | None) -> tuple[list[str], list[str]]:
    """The lines that are not blank, and where each of them is."""
    if not path.is_file():
        problem = "it is a folder" if path.is_dir() else "there is no such file"
        raise ValueError(f"--text {path}: {problem}")
    texts: list[str] = []
    places: list[str] = []
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip() and (limit is None or len(texts) < limit):
            texts.append(line)
            places.append(f"{path}, line {number:,}")
    check_has_text(path, number, has_text=bool(texts))
    return texts, places


def _check_hugging_face(folder: Path) -> None:
    """Check what can be checked before transformers is loaded, which takes seconds."""
    config = folder / MODEL.marker
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{folder} is no folder; give one that save_pretrained wrote: nothing is downloaded"
        )
    if not config.is_file():
        raise FileNotFoundError(
            f"{folder} has no {MODEL.marker}: it holds no model that save_pretrained wrote"
        )
    content = read_json(config)
    if not isinstance(content, dict) or "model_type" not in content:
        is_ours = isinstance(content, dict) and content.get("format") == FORMAT
        hint = "a translation model of relakit, which `relakit analyze` is for"
        raise ValueError(f"{folder} holds {hint if is_ours else 'no Hugging Face model'}")


def _load(
    folders: Sequence[Path],
    names: Sequence[str] | None,
    tokenizer: Path | None,
    unconverted: bool,
    threads: int | None,
    device: str,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Models and tokenizers by name, with the messages of transformers turned off."""
    try:
        import relakit.hf  # noqa: F401
    except ImportError as error:
        raise ValueError(str(error)) from None
    import torch
    from transformers.utils import logging

    from relakit.analysis import name_models
    from relakit.hf.model_folder import load_model, load_tokenizer
    from relakit.nn.arguments import check_usable

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    check_usable(device)
    set_threads(threads)
    by_name = dict(zip(names or name_models(folders), folders, strict=True))
    tokenizers = {
        its_name: load_tokenizer(folder if tokenizer is None else tokenizer)
        for its_name, folder in by_name.items()
    }
    models = {
        its_name: load_model(folder, unconverted=unconverted).to(torch.device(device))
        for its_name, folder in by_name.items()
    }
    return models, tokenizers


def _report_left_out(reasons: Sequence[str]) -> None:
    more = len(reasons) - 1
    others = f" ({number_with_noun(more, 'more text')} like it)" if more else ""
    typer.echo(f"relakit: left out: {reasons[0]}{others}", err=True)


def _print_summary(models: "Sequence[TextAnalysis]", console: Console) -> None:
    """A table with a row for each model."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for title in ("attention", "sparsity", "null rate", "first sink", "diversity"):
        table.add_column(title, justify="right")
    for model in models:
        result = model.result
        diversity = [value for value in next(iter(result.diversity.values())) if value is not None]
        table.add_row(
            Text(model.analysis.name),
            result.attention,
            mean_percent(result.sparsity),
            mean_percent(result.null_rate),
            mean_percent(result.first_sink),
            f"{sum(diversity) / len(diversity):.2f}" if diversity else "-",
        )
    console.print(table)
    temperatures = " and ".join(dict.fromkeys(next(iter(m.result.diversity)) for m in models))
    console.print(
        "Means over all layers and heads. first sink: weight on the first token. diversity: in "
        f"nats, at temperature {temperatures}."
    )

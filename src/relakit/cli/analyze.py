"""`relakit analyze`: what the attention of models does, in numbers, figures and a page."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from relakit.amounts import number_with_noun
from relakit.analysis.estimate import CONFIDENCE
from relakit.analysis.settings import EXPLORED, SHUFFLE_SEED, TEMPERATURES
from relakit.cli.consoles import messages_console, results_console
from relakit.cli.left_out_pairs import described_left_out, report_left_out
from relakit.cli.link_file_options import first_of, format_of, reverse_of
from relakit.cli.translator_options import (
    PAIR_TOKENS,
    Device,
    PrecisionName,
    Threads,
    describe_models,
    load_translator,
)
from relakit.decode.settings import DEVICE, PRECISION, SearchSettings
from relakit.report.settings import MAX_BYTES, TITLE

if TYPE_CHECKING:
    from relakit.analysis import (
        AnalysisSettings,
        AnalyzedModel,
        GoldFormatChoice,
        ModelAnalysis,
    )
    from relakit.analysis.gold import FirstWord
    from relakit.report import WrittenReport

DATA, NUMBERS, OUTPUT = "Data", "Numbers", "Output"
USUAL_TEMPERATURES: Final = ",".join(f"{value:g}" for value in TEMPERATURES)


def analyze(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A model directory.", file_okay=False, show_default=False
        ),
    ],
    source: Annotated[Path, typer.Option(help="Sentences, one per line.", rich_help_panel=DATA)],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where to write.", rich_help_panel=OUTPUT)
    ],
    target: Annotated[
        Path | None,
        typer.Option(
            help="The translations of --source. Without it, --source holds both, separated by a "
            "tab.",
            rich_help_panel=DATA,
        ),
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(help="Another model directory. Repeatable.", file_okay=False),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            help="A model's name in the figures: give one per model, MODEL first. \\[default: its "
            "folder's name]",
        ),
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(help="Gold word alignments.", rich_help_panel=DATA)
    ] = None,
    gold_format: Annotated[str, format_of("--gold", DATA)] = "auto",
    gold_first: Annotated[int | None, first_of("--gold", DATA)] = None,
    gold_reverse: Annotated[bool, reverse_of("--gold", DATA)] = False,
    tokenized: Annotated[
        bool,
        typer.Option(
            "--tokenized",
            help="The texts have spaces around all words, which is how --gold and --tags count "
            "them.",
            rich_help_panel=DATA,
        ),
    ] = False,
    tags: Annotated[
        Path | None,
        typer.Option(help="A tag for each target word, line by line.", rich_help_panel=DATA),
    ] = None,
    tagger: Annotated[
        str | None,
        typer.Option(
            metavar="PIPELINE",
            help="Tag target words with a spaCy pipeline, such as de_core_news_sm.",
            rich_help_panel=DATA,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Use only this many pairs, from the start.", rich_help_panel=DATA),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum tokens on a side of a pair; the memory for its attention grows with "
            f"their square. {PAIR_TOKENS}",
            rich_help_panel=DATA,
        ),
    ] = None,
    too_long: Annotated[
        str,
        typer.Option(
            metavar="skip|error",
            help="Whether a longer pair is left out and reported, or ends the command with an "
            "error.",
            rich_help_panel=DATA,
        ),
    ] = "skip",
    translate: Annotated[
        bool,
        typer.Option(
            "--translate/--no-translate",
            help="Translate the sources, for BLEU, chrF and attention to the model's own "
            "translations.",
            rich_help_panel=NUMBERS,
        ),
    ] = True,
    temperatures: Annotated[
        str | None,
        typer.Option(
            help=f"Temperatures of head diversity (Table 6). \\[default: {USUAL_TEMPERATURES}]",
            rich_help_panel=NUMBERS,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help=f"Seed for shuffling the targets (Figure 6). \\[default: {SHUFFLE_SEED}]",
            rich_help_panel=NUMBERS,
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help=f"Level of confidence intervals. \\[default: {CONFIDENCE}]",
            rich_help_panel=NUMBERS,
        ),
    ] = None,
    explore: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many sentences to show in the report, spread over the test set; fewer if the "
            f"file would grow beyond {MAX_BYTES / 1e6:g} MB. \\[default: {EXPLORED}]",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(help=f"The report's title. \\[default: {TITLE}]", rich_help_panel=OUTPUT),
    ] = None,
    threads: Threads = None,
    precision: PrecisionName = PRECISION,
    device: Device = DEVICE,
) -> None:
    """Analyze the attention of one or more models on a test set.

    Measures sparsity, null attention, sinks, head diversity and, with --gold, word alignments of
    every layer and head, while the models are made to write the given translations. DIR gets the
    numbers as JSON and CSV, the paper's figures 3 to 10, and report.html: one page with all of it,
    which needs no network. docs/analysis.md explains each number.
    """
    folders = [model, *(compare or ())]
    if name:
        check_names(name, len(folders))
    settings = analysis_settings(temperatures, seed, confidence)
    if too_long not in ("skip", "error"):
        raise ValueError(f"--too-long must be skip or error, got {too_long!r}")
    if tags is not None and tagger is not None:
        raise ValueError("--tags and --tagger exclude each other; give one of them")
    from relakit.analysis import PairFiles, ShortPairs, name_models
    from relakit.files.output_paths import refuse_inputs
    from relakit.report.report_folder import check_report_folder

    inputs = {"--source": source, "--target": target, "--gold": gold, "--tags": tags}
    for option, path in inputs.items():
        if path is not None and not path.is_file():
            problem = " is a folder; name a file" if path.is_dir() else ": there is no such file"
            raise ValueError(f"{option} {path}{problem}")
    refuse_inputs("--out", out, {**inputs, "MODEL": model, "--compare": compare})
    check_report_folder(out)
    names = dict(zip(name or name_models(folders), folders, strict=True))
    described = {
        its_name: describe_models([folder], threads=threads, precision=precision, device=device)[0]
        for its_name, folder in names.items()
    }
    console = messages_console()
    with console.status("Reading the test set ..."):
        read = PairFiles(
            source=source,
            target=target,
            gold=gold,
            gold_format=cast("GoldFormatChoice", gold_format),
            gold_first=cast("FirstWord | None", gold_first),
            gold_reverse=gold_reverse,
            tags=tags,
            tagger=tagger,
            tokenized=tokenized,
            limit=limit,
        )
        pairs = ShortPairs(read, described, max_tokens)
    report_left_out(pairs, source, too_long)
    from relakit.analysis import analyze_models
    from relakit.report import write_report

    models = {
        its_name: load_translator([folder], threads=threads, precision=precision, device=device)
        for its_name, folder in names.items()
    }
    with analysis_bar(console, len(pairs)) as progress:
        analyzed = analyze_models(
            models,
            pairs,
            settings=settings,
            inputs={
                **read.description,
                **described_left_out(pairs),
                **_computation(precision, translate),
            },
            explored=EXPLORED if explore is None else explore,
            translate=translate,
            progress=progress,
        )
    written = write_report(analyzed, out, title=TITLE if title is None else title)
    print_summary(analyzed, results_console())
    print_written(written, len(pairs), results_console())
    if read.empty_sides:
        empty = number_with_noun(read.empty_sides, "pair")
        console.print(f"{empty} with an empty side: they count like all others.")


@contextmanager
def analysis_bar(console: Console, pairs: int) -> "Iterator[Callable[[str, str, int], None]]":
    """A bar for each model and stage; yields the function to pass as ``progress``."""
    tasks: dict[tuple[str, str], TaskID] = {}
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,  # it would leave a blank line
    ) as bars:

        def show(name: str, stage: str, done: int) -> None:
            if (name, stage) not in tasks:
                tasks[name, stage] = bars.add_task(f"{name}: {stage}", total=pairs)
            bars.update(tasks[name, stage], completed=done)

        yield show


def _computation(precision: str, translate: bool) -> dict[str, str]:
    """How attention and translations are computed, for the report."""
    facts = {"attention": "fp32" if precision == "int8" else precision}
    if translate:
        facts["translations"] = f"{SearchSettings()}, {precision}"
    return facts


def check_names(names: Sequence[str], models: int) -> None:
    """Raise ValueError unless there is one name per model and all names differ."""
    if len(names) != models:
        raise ValueError(
            f"there are {number_with_noun(models, 'model')} and "
            f"{number_with_noun(len(names), 'name')}; give one --name for each, or none"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"--name must differ, got {', '.join(names)}")


def analysis_settings(
    temperatures: str | None, seed: int | None = None, confidence: float | None = None
) -> "AnalysisSettings":
    """The settings that were given; the others keep their defaults."""
    from relakit.analysis import AnalysisSettings

    given: dict[str, object] = {}
    if temperatures is not None:
        try:
            values = tuple(float(part) for part in temperatures.split(","))
        except ValueError:
            raise ValueError(
                f"--temperatures must be numbers with commas between them, got {temperatures!r}"
            ) from None
        shown = {f"{value:g}" for value in values}  # as in tables and files
        if not all(0 < value < math.inf for value in values) or len(shown) < len(values):
            raise ValueError(
                "--temperatures must be numbers above 0 that differ in their first six digits, got "
                f"{temperatures!r}"
            )
        given["temperatures"] = values
    if seed is not None:
        if seed < 0:
            raise ValueError(f"--seed must not be negative, got {seed}")
        given["shuffle_seed"] = seed
    if confidence is not None:
        if not 0 < confidence < 1:
            raise ValueError(f"--confidence must be between 0 and 1, got {confidence}")
        given["confidence"] = confidence
    return AnalysisSettings.model_validate(given)


def print_summary(models: "Sequence[AnalyzedModel]", console: Console) -> None:
    """A table with a row for each model."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for title in ("BLEU", "sparsity", "null rate", "gap", "AER", "AoL", "AoH"):
        table.add_column(title, justify="right")
    for model in models:
        table.add_row(Text(model.analysis.name), *_summary(model.analysis))
    console.print(table)
    explanation = (
        "Of cross-attention, means over all layers and heads. gap: how much the null rate rises "
        "with wrong sources, in the layer where it rises most."
    )
    if any(model.analysis.alignment for model in models):
        explanation += (
            " AER is that of the best head. All three error rates are for the reading (normal or "
            "shifted) in which that head was found."
        )
    else:
        explanation += " There is no --gold, so no alignment error rate."
    console.print(explanation)


def _summary(analysis: "ModelAnalysis") -> list[str]:
    cross = analysis.kind("cross")
    gaps = [] if analysis.shuffled is None else [gap.mean for gap in analysis.shuffled.cross_gap]
    cells = [
        "-" if analysis.bleu is None else f"{analysis.bleu:.1f}",
        mean_percent(cross.sparsity),
        mean_percent(cross.null_rate),
        f"{max(gaps):+.1%}" if gaps else "-",
    ]
    alignment = analysis.alignment
    if alignment is None:
        return [*cells, "-", "-", "-"]
    scores = alignment.scores(alignment.best_reading)
    best = alignment.best_score(alignment.best_reading).aer
    return [*cells, *(f"{value:.2f}" for value in (best, scores.aol, scores.aoh))]


def mean_percent(values: Sequence[Sequence[float | None]]) -> str:
    """The mean over all heads that have a value."""
    from relakit.analysis.results import mean_of

    mean = mean_of(values)
    return "-" if mean is None else f"{mean:.1%}"


def print_written(
    written: "WrittenReport",
    count: int,
    console: Console,
    *,
    read: str = "pair",
    explored: str = "sentence",
) -> None:
    """Print where everything is; ``read`` and ``explored`` name what was analyzed and is shown."""
    figures = f", figures in {written.figures}." if written.no_figures is None else "."
    to_explore = number_with_noun(written.explored, explored)
    lines = [
        f"{number_with_noun(count, read)}. Numbers in {written.folder}/*.json and "
        f"{written.tables}{figures}",
        "" if written.no_figures is None else f"No figures: {written.no_figures}",
        f"The report, with {to_explore} to explore: {written.page}",
    ]
    for line in filter(None, lines):
        console.print(line, soft_wrap=True)

"""`relakit analyze`: what the attention of models does, in numbers, figures and a page."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relakit.cli.analysis_files import (
    EXPLORED,
    FIGURES,
    TABLES,
    AnalysedModel,
    NamedModel,
    Written,
    analyse,
    check_folder,
    write_analysis,
)
from relakit.cli.translator_options import Device, PrecisionName, Threads, load_translator

if TYPE_CHECKING:
    from relakit.analysis import AnalysisPair, GoldFormatChoice
    from relakit.analysis.pharaoh import FirstWord
    from relakit.analysis.results import AnalysisSettings, ModelAnalysis

DATA, NUMBERS, OUTPUT = "Data", "Numbers", "Output"


def analyze(
    model: Annotated[
        Path, typer.Argument(help="A model directory.", file_okay=False, show_default=False)
    ],
    source: Annotated[Path, typer.Option(help="Sentences, one per line.", rich_help_panel=DATA)],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where to write.", rich_help_panel=OUTPUT)
    ],
    target: Annotated[
        Path | None,
        typer.Option(
            help="Their translations; without it --source has both, with a tab between them.",
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
            help="What a model is called in figures: once for each, MODEL first. \\[default: its "
            "folder's name]",
        ),
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(help="Gold word alignments.", rich_help_panel=DATA)
    ] = None,
    gold_format: Annotated[
        str,
        typer.Option(metavar="auto|pharaoh|naacl|talp", help="Of --gold.", rich_help_panel=DATA),
    ] = "auto",
    gold_first: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=1,
            help="The number of a sentence's first word in --gold. \\[default: the format's]",
            rich_help_panel=DATA,
        ),
    ] = None,
    gold_reverse: Annotated[
        bool,
        typer.Option(
            "--gold-reverse", help="--gold names the target word first.", rich_help_panel=DATA
        ),
    ] = False,
    tokenized: Annotated[
        bool,
        typer.Option(
            "--tokenized",
            help="All words of the texts have spaces around them, as --gold and --tags count them.",
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
            help="Tag target words with a pipeline of spaCy, such as de_core_news_sm.",
            rich_help_panel=DATA,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Only the first so many pairs.", rich_help_panel=DATA),
    ] = None,
    translate: Annotated[
        bool,
        typer.Option(
            "--translate/--no-translate",
            help="Translate the sources, for BLEU.",
            rich_help_panel=NUMBERS,
        ),
    ] = True,
    temperatures: Annotated[
        str, typer.Option(help="Of head diversity (Table 6).", rich_help_panel=NUMBERS)
    ] = "1,0.5,0.25,0.1",
    seed: Annotated[
        int, typer.Option(help="For shuffling the targets (Figure 6).", rich_help_panel=NUMBERS)
    ] = 1,
    confidence: Annotated[
        float, typer.Option(help="Level of confidence intervals.", rich_help_panel=NUMBERS)
    ] = 0.95,
    explore: Annotated[
        int,
        typer.Option(
            min=0,
            help="Sentences to look at in the report, spread over the test set; fewer if the file "
            "would grow beyond 16 MB.",
            rich_help_panel=OUTPUT,
        ),
    ] = EXPLORED,
    title: Annotated[str, typer.Option(help="Of the report.", rich_help_panel=OUTPUT)] = (
        "Attention report"
    ),
    threads: Threads = None,
    precision: PrecisionName = "fp32",
    device: Device = "cpu",
) -> None:
    """Analyse the attention of one or more models on a test set.

    Sparsity, null attention, sinks, head diversity and, with --gold, word alignments of every layer
    and head, on translations that the models are made to write. DIR gets the numbers as JSON and
    CSV, the paper's figures 3 to 10, and report.html: one page to look at it all, without a
    network. docs/analysis.md explains each number.
    """
    folders = [model, *(compare or ())]
    names = _names(folders, name)
    settings = _settings(temperatures, seed, confidence)
    if tags is not None and tagger is not None:
        raise ValueError("--tags and --tagger exclude each other; give one")
    check_folder(out)
    for option, path in (("source", source), ("target", target), ("gold", gold), ("tags", tags)):
        if path is not None and not path.is_file():
            raise ValueError(f"--{option} {path}: there is no such file")
    pairs = _reader(
        source,
        target,
        gold=gold,
        gold_format=gold_format,
        gold_first=gold_first,
        gold_reverse=gold_reverse,
        tags=tags,
        tagger=tagger,
        tokenized=tokenized,
        limit=limit,
    )
    console = Console(stderr=True)
    with console.status("Reading the test set ..."):
        count, empty = _check(pairs(), gold)
    models = [
        NamedModel(
            its_name,
            load_translator(folder, threads=threads, precision=precision, device=device),
        )
        for its_name, folder in zip(names, folders, strict=True)
    ]
    analysed = analyse(
        models,
        pairs,
        count,
        settings=settings,
        inputs=_inputs(
            source=source,
            target=target,
            gold=gold and f"{gold} ({gold_format})",
            tags=tags or (tagger and f"by spaCy's {tagger}"),
            words="between spaces" if tokenized else "between spaces and punctuation",
            attention="fp32" if precision == "int8" else precision,
            translations=f"beam 4, length penalty 0.6, {precision}" if translate else None,
        ),
        explored=explore,
        translates=translate,
        console=console,
    )
    written = write_analysis(analysed, out, title=title)
    print_summary(analysed, Console(highlight=False))
    print_written(written, count, Console(highlight=False))
    if empty:
        note = f"{_counted(empty, 'pair')} with an empty side: they count like all others."
        console.print(note, markup=False)


def _check(pairs: "Iterable[AnalysisPair]", gold: Path | None) -> tuple[int, int]:
    """How many pairs there are, and how many of them have an empty side.

    Mistakes in the files are found before the work starts.
    """
    count = empty = sure = 0
    for pair in pairs:
        count += 1
        empty += not pair.source_words or not pair.target_words
        sure += 0 if pair.gold is None else len(pair.gold.sure)
    if gold is not None and not sure:
        raise ValueError(f"{gold} has no sure link in {count:,} pairs: there is nothing to score")
    return count, empty


def _inputs(**facts: object) -> dict[str, str]:
    return {name: str(fact) for name, fact in facts.items() if fact is not None}


def _names(folders: Sequence[Path], given: Sequence[str] | None) -> list[str]:
    """Of each model: as given, or what tells the folders apart."""
    if given:
        if len(given) != len(folders):
            raise ValueError(
                f"there are {len(folders)} models and {len(given)} times --name: give one for each"
            )
        if len(set(given)) < len(given):
            raise ValueError(f"--name must differ, got {', '.join(given)}")
        return list(given)
    resolved = [folder.resolve() for folder in folders]
    # A run's model is in a folder that is always called "model".
    names = [path.parent.name if path.name == "model" else path.name for path in resolved]
    if len(set(names)) == len(names):
        return names
    return [f"{name} {number}" for number, name in enumerate(names, start=1)]


def _settings(temperatures: str, seed: int, confidence: float) -> "AnalysisSettings":
    from relakit.analysis.results import AnalysisSettings

    try:
        values = tuple(float(part) for part in temperatures.split(","))
    except ValueError:
        raise ValueError(
            f"--temperatures must be numbers with commas between them, got {temperatures!r}"
        ) from None
    if not all(value > 0 for value in values) or len(set(values)) < len(values):
        raise ValueError(f"--temperatures must be above 0 and differ, got {temperatures!r}")
    if seed < 0:
        raise ValueError(f"--seed must not be negative, got {seed}")
    if not 0 < confidence < 1:
        raise ValueError(f"--confidence must be between 0 and 1, got {confidence}")
    return AnalysisSettings(temperatures=values, shuffle_seed=seed, confidence=confidence)


def _reader(
    source: Path,
    target: Path | None,
    *,
    gold: Path | None,
    gold_format: str,
    gold_first: int | None,
    gold_reverse: bool,
    tags: Path | None,
    tagger: str | None,
    tokenized: bool,
    limit: int | None,
) -> "Callable[[], Iterable[AnalysisPair]]":
    """Gives the pairs, from the files anew each time: they need not fit into memory."""
    from itertools import islice

    from relakit.analysis import read_analysis_pairs
    from relakit.data.parallel_files import ParallelFiles

    def read() -> "Iterator[AnalysisPair]":
        pairs = read_analysis_pairs(
            ParallelFiles(source, target),
            gold=gold,
            format=cast("GoldFormatChoice", gold_format),
            first=cast("FirstWord | None", gold_first),
            reverse=gold_reverse,
            tags=tags,
            tokenized=tokenized,
        )
        return islice(pairs, limit)

    if tagger is None:
        return read
    from relakit.analysis.tagger import tag_pair

    tagged = [tag_pair(pair, tagger) for pair in read()]  # kept: tagging takes long
    return lambda: tagged


def print_summary(models: Sequence[AnalysedModel], console: Console) -> None:
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
            " AER: of the best head; it, AoL and AoH by the reading (normal, shifted) that has the "
            "best head."
        )
    else:
        explanation += " There is no --gold, so no alignment error rate."
    console.print(explanation)


def _summary(analysis: "ModelAnalysis") -> list[str]:
    cross = analysis.kind("cross")
    gaps = [] if analysis.shuffled is None else [gap.mean for gap in analysis.shuffled.cross_gap]
    cells = [
        "-" if analysis.bleu is None else f"{analysis.bleu:.1f}",
        _mean_percent(cross.sparsity),
        _mean_percent(cross.null_rate),
        f"{max(gaps):+.1%}" if gaps else "-",
    ]
    alignment = analysis.alignment
    if alignment is None:
        return [*cells, "-", "-", "-"]
    scores = alignment.scores(alignment.best_reading)
    best = alignment.best_score(alignment.best_reading).aer
    return [*cells, *(f"{value:.2f}" for value in (best, scores.aol, scores.aoh))]


def _mean_percent(values: Sequence[Sequence[float | None]]) -> str:
    counted = [value for layer in values for value in layer if value is not None]
    return f"{sum(counted) / len(counted):.1%}" if counted else "-"


def print_written(written: Written, pairs: int, console: Console) -> None:
    """Where everything is."""
    folder = written.report.parent
    lines = [
        f"{_counted(pairs, 'pair')}. Numbers in {folder}/*.json and {folder / TABLES}"
        + (f", figures in {folder / FIGURES}." if written.note is None else "."),
        "" if written.note is None else f"No figures: {written.note}",
        f"The report, with {_counted(written.explored, 'sentence')} to explore: {written.report}",
    ]
    for line in filter(None, lines):
        console.print(line, soft_wrap=True, markup=False)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"

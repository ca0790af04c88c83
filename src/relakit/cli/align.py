"""`relakit align`: links between the words of sentence pairs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relakit.align.settings import (
    ALIGNMENT_FORMATS,
    ALONE,
    COMPUTED_ALONE,
    LEVELS,
    PAIRS_TO_CHOOSE_ON,
    SYMMETRIZATION,
    SYMMETRIZATIONS,
    WORD_RULES,
)
from relakit.cli.align_request import AlignRequest
from relakit.cli.completion import complete_model
from relakit.cli.link_file_options import (
    first_of,
    format_of,
    link_file,
    refuse_without_file,
    reverse_of,
)
from relakit.cli.pair_job import (
    COLUMNS,
    ENGINE,
    OUTPUT,
    PAIRS,
    Columns,
    EngineName,
    InputFormat,
    Languages,
    Model,
    Restart,
    ShardPairs,
    Source,
    Target,
    Timeout,
    Workers,
    chosen_engine,
    pair_files,
    pair_languages,
    run_with_bar,
)
from relakit.cli.standard_streams import file_or_stream
from relakit.cli.translator_options import PAIR_TOKENS
from relakit.files.output_paths import refuse_inputs
from relakit.files.writing import check_writable
from relakit.known_names import known_name
from relakit.shards.cutting import SHARD_PAIRS

if TYPE_CHECKING:
    from relakit.align.work import AlignSettings
    from relakit.data.parallel_files import ParallelFiles
    from relakit.shards.engines import Engine

HEADS, DIRECTIONS = "Where links are read", "Both directions"


def align(
    model: Model,
    source: Source,
    target: Target = None,
    input_format: InputFormat = None,
    columns: Columns = COLUMNS,
    languages: Languages = None,
    words: Annotated[
        str,
        typer.Option(
            metavar="|".join(WORD_RULES),
            help="What a word is. spaces: whatever stands between spaces. punctuation: the same, "
            "with punctuation marks split off, as in relakit analyze. tokenized: the text already "
            "has spaces around its marks.",
            rich_help_panel=PAIRS,
        ),
    ] = "spaces",
    output: Annotated[
        Path | None,
        typer.Option(
            help="The file to write, one line per pair; plain, .gz or .zst. It appears once all "
            "pairs are aligned. \\[default: standard output, as with -]",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(ALIGNMENT_FORMATS),
            help="pharaoh: 0-0 1-2, source first, counted from 0. json: also scores, unlinked "
            "words and the null rate. text: the words themselves. \\[default: "
            f"{ALIGNMENT_FORMATS[0]}]",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(LEVELS),
            help="Link words, as --words splits them, or the model's tokens. "
            f"\\[default: {LEVELS[0]}]",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    reverse: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="A model for the opposite direction, trained with relakit train RECIPE --reverse.",
            rich_help_panel=DIRECTIONS,
            autocompletion=complete_model,
        ),
    ] = None,
    symmetrize: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(SYMMETRIZATIONS),
            help="With --reverse: how to combine the links of both directions. "
            f"\\[default: {SYMMETRIZATION}]",
            rich_help_panel=DIRECTIONS,
        ),
    ] = None,
    select: Annotated[
        bool,
        typer.Option(
            "--select",
            help="Align nothing; choose the layer and heads on the first pairs, and save the "
            "choice with the model.",
            rich_help_panel=HEADS,
        ),
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(
            help="With --select: gold links of the pairs, to choose heads by. Without them, heads "
            "are chosen by agreement with --reverse, or by words that are the same on both sides.",
            rich_help_panel=HEADS,
        ),
    ] = None,
    gold_format: Annotated[str, format_of("--gold", HEADS)] = "auto",
    gold_first: Annotated[int | None, first_of("--gold", HEADS)] = None,
    gold_reverse: Annotated[bool, reverse_of("--gold", HEADS)] = False,
    limit: Annotated[
        int,
        typer.Option(min=1, help="Choose heads on at most this many pairs.", rich_help_panel=HEADS),
    ] = PAIRS_TO_CHOOSE_ON,
    layer: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Read this layer of MODEL's decoder, counted from 1, instead of its alignment "
            "layer or the chosen heads.",
            rich_help_panel=HEADS,
        ),
    ] = None,
    head: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            help="Read this head of --layer, counted from 1. Repeatable; the weights of several "
            "heads are averaged. \\[default: all]",
            rich_help_panel=HEADS,
        ),
    ] = None,
    reading: Annotated[
        str | None,
        typer.Option(
            metavar="normal|shifted",
            help="Read --layer in the step that predicts a word (normal), or in the step after it, "
            "when the word is the input (shifted). \\[default: normal]",
            rich_help_panel=HEADS,
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            metavar="ignored|competes",
            help="With --layer: weight on the end of the source is ignored, or competes: a word "
            "that attends to it more than to any word has no link. \\[default: ignored]",
            rich_help_panel=HEADS,
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Maximum tokens on a side; longer pairs get no links. {PAIR_TOKENS}",
            rich_help_panel=PAIRS,
        ),
    ] = None,
    workers: Workers = None,
    engine: EngineName = ENGINE,
    timeout: Timeout = None,
    shard_pairs: ShardPairs = SHARD_PAIRS,
    restart: Restart = False,
) -> None:
    """Link the words of sentence pairs, using the attention of a translation model.

    The output has one line per pair, also for pairs without links or without words.
    If the command is interrupted, run it again to resume where it stopped.

    For example: relakit align runs/mine/model --source a.en --target a.de --output links
    """
    from relakit.analysis.links import END_WEIGHTS, READINGS

    _check_names(
        {
            "--words": (words, WORD_RULES),
            "--format": (format, ALIGNMENT_FORMATS),
            "--level": (level, LEVELS),
            "--symmetrize": (symmetrize, SYMMETRIZATIONS),
            "--reading": (reading, READINGS),
            "--end": (end, END_WEIGHTS),
        }
    )
    written = file_or_stream(output)
    if written is not None:
        inputs = {"MODEL": model, "--reverse": reverse, "--source": source, "--target": target}
        refuse_inputs("--output", written, inputs)
    if gold is not None and not select:
        raise ValueError("--gold is for --select; relakit aer scores links against gold ones")
    refuse_without_file("--gold", gold, gold_format, gold_first, gold_reverse)
    for option, given in (("--head", head), ("--reading", reading), ("--end", end)):
        if given and layer is None:
            raise ValueError(f"{option} is one of a layer: name it with --layer")
    if select and layer is not None:
        raise ValueError("--select looks for the best layer; leave --layer out")
    if layer is not None and reverse is None and limit != PAIRS_TO_CHOOSE_ON:
        raise ValueError("--limit is about choosing heads, and --layer names them; leave one out")
    if select:
        _refuse_with_select(
            {
                "--output": output,
                "--format": format,
                "--level": level,
                "--symmetrize": symmetrize,
                "--restart": restart or None,
                "--workers": workers,
                "--engine": None if engine == ENGINE else engine,
                "--timeout": timeout,
                "--shard-pairs": None if shard_pairs == SHARD_PAIRS else shard_pairs,
            }
        )
    if symmetrize is not None and reverse is None:
        raise ValueError(
            f"--symmetrize {symmetrize} is for the links of two models; name the other one with "
            "--reverse, or leave it out"
        )
    request = AlignRequest(model, reverse, words, max_tokens)
    if layer is not None:
        request.read_layer(layer, head or (), reading, end)
    known = pair_languages(languages, request.described.about)
    files = pair_files(source, target, input_format, columns, known)
    runner = chosen_engine(engine, workers, timeout)
    if select:
        links = None
        if gold is not None:
            links = link_file(
                "--gold", gold, gold_format, gold_first, gold_reverse, is_read_once=True
            )
        request.select(files, links, limit)
        return
    if written is not None:
        check_writable(written)  # before heads are chosen and saved
    there, back = request.choices(files, limit)
    named = {"symmetrization": symmetrize, "format": format, "level": level}
    settings = request.settings(there, back, {k: v for k, v in named.items() if v is not None})
    _align(settings, files, written, runner, shard_pairs, restart)


def _check_names(options: Mapping[str, tuple[str | None, Sequence[str]]]) -> None:
    for option, (given, known) in options.items():
        if given is not None:
            known_name(option, given, known)


def _refuse_with_select(options: Mapping[str, object]) -> None:
    for option, given in options.items():
        if given is not None:
            raise ValueError(f"--select aligns nothing; leave {option} out, or --select")


def _align(
    settings: "AlignSettings",
    files: "ParallelFiles",
    output: Path | None,
    engine: "Engine",
    shard_pairs: int,
    restart: bool,
) -> None:
    from relakit.align.work import TOO_LONG
    from relakit.model.description import model_digests
    from relakit.shards.run import Job

    digests = {name: model_digests(folder) for name, folder in settings.models.items()}
    facts: dict[str, Any] = {
        "settings": settings.model_dump(mode="json", exclude={"model", "reverse"}),
        "models": digests,
    }
    job = Job(settings.description(digests), files, facts=facts, shard_pairs=shard_pairs)
    summary = run_with_bar(job, output, engine, restart=restart)
    long = summary.counts.get(TOO_LONG, 0)
    if long:
        typer.echo(
            f"relakit: {long:,} of {summary.pairs:,} pairs are too long and have no links "
            "(--max-tokens)",
            err=True,
        )
    if summary.counts.get(ALONE):
        typer.echo(f"relakit: {COMPUTED_ALONE}", err=True)
    if output is not None:
        typer.echo(f"relakit: {summary.pairs:,} pairs aligned: {output}", err=True)

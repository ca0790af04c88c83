"""`relakit score`: what a model says about each sentence pair of a corpus."""

from pathlib import Path
from typing import Annotated

import typer

from relakit.cli.completion import complete_model
from relakit.cli.pair_job import (
    COLUMNS,
    ENGINE,
    OUTPUT,
    Columns,
    EngineName,
    InputFormat,
    Languages,
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
from relakit.cli.score_options import (
    BatchTokens,
    LanguagesFrom,
    MaxTokens,
    Reverse,
    learned_languages,
)
from relakit.cli.standard_streams import file_or_stream
from relakit.files.output_paths import refuse_inputs
from relakit.shards.cutting import SHARD_PAIRS


def score(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A directory of a model from source to target.",
            show_default=False,
            autocompletion=complete_model,
        ),
    ],
    source: Source,
    target: Target = None,
    input_format: InputFormat = None,
    columns: Columns = COLUMNS,
    languages: Languages = None,
    reverse: Reverse = None,
    languages_from: LanguagesFrom = None,
    max_tokens: MaxTokens = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The table to write, tab-separated; compressed if the name ends in .gz or .zst, "
            "Parquet if it ends in .parquet. \\[default: standard output, as with -]",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    workers: Workers = None,
    engine: EngineName = ENGINE,
    timeout: Timeout = None,
    shard_pairs: ShardPairs = SHARD_PAIRS,
    batch_tokens: BatchTokens = None,
    restart: Restart = False,
) -> None:
    """Score every sentence pair of a corpus, to tell good pairs from bad ones.

    Writes one row per pair, also for blank lines: how much of the target attends to nothing, which
    words the other side does not support, cross-entropy, lengths, languages. docs/cleaning.md
    explains the columns. A pair's scores depend only on that pair and the models.

    Finished work is kept in FILE.parts until FILE is complete: if the command is stopped, run it
    again to resume. FILE.json then records what FILE was made from; relakit filter reads it.
    """
    from relakit.clean.score import ScoreJob, ScoreSettings
    from relakit.model.description import read_description

    written = file_or_stream(output)
    if written is not None:
        inputs = {
            "--source": source,
            "--target": target,
            "MODEL": model,
            "--reverse": reverse,
            "--languages-from": languages_from,
        }
        refuse_inputs("--output", written, inputs)
    about = read_description(model).about
    pairs = pair_files(source, target, input_format, columns, pair_languages(languages, about))
    runner = chosen_engine(engine, workers, timeout)
    settings = ScoreSettings(
        model=model,
        reverse=reverse,
        languages=learned_languages(languages_from),
        max_tokens=max_tokens,
        batch_tokens=ScoreSettings.batch_tokens if batch_tokens is None else batch_tokens,
    )
    scoring = ScoreJob(pairs, settings, shard_pairs=shard_pairs)
    summary = run_with_bar(
        scoring.job,
        written,
        runner,
        restart=restart,
        receipt=True,
        write=scoring.writer(written),
    )
    for note in (*scoring.notes(), *scoring.counted(summary.counts)):
        typer.echo(f"relakit: {note}", err=True)

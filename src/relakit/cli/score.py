"""`relakit score`: what a model says about each sentence pair of a corpus."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relakit.cli.completion import complete_model
from relakit.cli.pair_job import (
    COLUMNS,
    COMPUTATION,
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
from relakit.files.output_paths import refuse_inputs
from relakit.limits import number_with_noun
from relakit.shards.cutting import SHARD_PAIRS

if TYPE_CHECKING:
    from relakit.data.languages import LanguagePair

SCORES = "The scores"


def score(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A model directory, from source to target.",
            show_default=False,
            autocompletion=complete_model,
        ),
    ],
    source: Source,
    target: Target = None,
    input_format: InputFormat = None,
    columns: Columns = COLUMNS,
    languages: Languages = None,
    reverse: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="A model directory of the other direction, for dual cross-entropy.",
            rich_help_panel=SCORES,
            autocompletion=complete_model,
        ),
    ] = None,
    languages_from: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="SOURCE TARGET",
            help="Clean text to learn both languages from. \\[default: what MODEL was trained on]",
            rich_help_panel=SCORES,
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Most tokens on a side; one with more is scored by its beginning, and reported. "
            "\\[default: as many as fit into 256 MiB of attention]",
            rich_help_panel=SCORES,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A table with tabs; compressed if it ends in .gz or .zst, Parquet if in .parquet. "
            "\\[default: standard output, as for -]",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    workers: Workers = None,
    engine: EngineName = ENGINE,
    timeout: Timeout = None,
    shard_pairs: ShardPairs = SHARD_PAIRS,
    batch_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Padded tokens that are computed at once; scores do not depend on it. "
            "\\[default: 4096]",
            rich_help_panel=COMPUTATION,
        ),
    ] = None,
    restart: Restart = False,
) -> None:
    """Score every sentence pair of a corpus, to tell good pairs from bad ones.

    One row for each pair, also for blank lines: how much of the target attends to nothing, which
    words the other side does not support, cross-entropy, lengths, languages. docs/cleaning.md
    explains the columns. A pair's scores depend on that pair and the models alone.

    What is done is kept in FILE.parts until FILE is there: if the command is stopped, the same
    command goes on.
    """
    from relakit.clean.score import ScoreJob, ScoreSettings
    from relakit.model.description import read_description

    written = None if output in (None, Path("-")) else output
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
        languages=None if languages_from is None else _learned(*languages_from),
        max_tokens=max_tokens,
        batch_tokens=ScoreSettings.batch_tokens if batch_tokens is None else batch_tokens,
    )
    scoring = ScoreJob(pairs, settings, shard_pairs=shard_pairs)
    with suppress(BrokenPipeError):  # whoever reads the scores has enough of them
        summary = run_with_bar(
            scoring.job, written, runner, restart=restart, write=scoring.writer(written)
        )
        for note in (*scoring.notes(), *_counted(summary.counts, scoring.max_tokens)):
            typer.echo(f"relakit: {note}", err=True)


def _learned(source: Path, target: Path) -> "LanguagePair":
    from relakit.data.languages import LanguageModel, LanguagePair
    from relakit.data.lines import read_lines

    learned = []
    for path in (source, target):
        try:
            learned.append(LanguageModel.learn(read_lines(path)))
        except ValueError as error:
            named = str(path) in str(error)
            raise ValueError(f"--languages-from {'' if named else f'{path}: '}{error}") from None
    return LanguagePair(*learned)


def _counted(counts: Mapping[str, int], max_tokens: int) -> list[str]:
    from relakit.clean.counted import ALONE, BLANK, CROPPED

    notes = []
    if counts.get(BLANK):
        pairs = number_with_noun(counts[BLANK], "pair")
        notes.append(f"{pairs} with a blank side: nothing but the line is in their rows")
    if counts.get(CROPPED):
        pairs = number_with_noun(counts[CROPPED], "pair")
        notes.append(
            f"{pairs} with more than {max_tokens:,} tokens on a side: scored by the beginning "
            "(--max-tokens)"
        )
    if counts.get(ALONE):
        notes.append(
            "this processor rounds otherwise in batches, so pairs were computed one by one, which "
            "is slower, and the same for all"
        )
    return notes
